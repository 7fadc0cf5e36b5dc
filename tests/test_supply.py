"""What may be a part of the product, by its licence."""

from __future__ import annotations

from email.message import Message

import pytest

from supply import licence, refused


@pytest.mark.parametrize(
    "name", ["AGPL-3.0-only", "GNU General Public License v3 (GPLv3)", "GPL-2.0-only", "not said", "UNKNOWN"]
)
def test_a_licence_that_binds_the_product_is_refused(name: str) -> None:
    assert refused(name)


@pytest.mark.parametrize(
    "name",
    [
        "MIT",
        "LGPL-3.0-only",
        "GNU Lesser General Public License v3",
        "Apache-2.0 OR BSD-3-Clause",
        "MIT OR GPL-2.0-only",
    ],
)
def test_others_are_not(name: str) -> None:
    assert not refused(name)


def test_an_expression_counts_before_classifiers_and_words() -> None:
    found = Message()
    assert licence(found) == "not said"
    found["License"] = "\n"
    assert licence(found) == "not said"
    del found["License"]
    found["License"] = "My own words\nof many lines"
    assert licence(found) == "My own words"
    found["Classifier"] = "License :: OSI Approved :: MIT License"
    assert licence(found) == "MIT License"
    found["License-Expression"] = "MIT-0"
    assert licence(found) == "MIT-0"
