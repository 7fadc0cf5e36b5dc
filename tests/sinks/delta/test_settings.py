"""Settings of a Delta sink."""

from __future__ import annotations

import pytest

from historian.errors import ConfigError
from historian.names import TableName
from sinks.contract.tables import target_name
from sinks.delta import DeltaSettings


def test_a_target_is_called_by_its_pattern() -> None:
    assert "shop_orders_changes" == target_name("{database}_{table}_changes", TableName("shop", "orders"))


def test_no_name_leaves_its_directory() -> None:
    assert "a_.._b_c" == target_name("{database}_{table}", TableName("a/..", "b c"))


@pytest.mark.parametrize(
    "settings, problem",
    [
        ({"changelog": "{schema}_x"}, "expected a name with {database} and {table} @ $.changelog (got '{schema}_x')"),
        ({"mirror": "all"}, "expected a name with {database} and {table} @ $.mirror (got 'all')"),
        ({"changelog": None, "mirror": None}, "expected a changelog, a mirror or a history @ $ (got none)"),
        ({"history": "all"}, "expected a name with {database} and {table} @ $.history (got 'all')"),
        ({"history": "{database}_{table}"}, "expected another name than the mirror's @ $.history"),
        ({"evolution": (("preset", "lax"),)}, "expected strict or evolve or lenient @ $.evolution.preset (got 'lax')"),
        ({"evolution": (("change_key", "keep"),)}, "expected apply or quarantine or fail @ $.evolution.change_key"),
        ({"changelog": "{table}", "mirror": "{table}"}, "expected another name than the changelog's @ $.mirror"),
    ],
)
def test_settings_that_cannot_work_say_why(settings: dict[str, str | None], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        DeltaSettings(path="lake", **settings)

    assert problem in str(error.value)


def test_one_table_may_have_names_of_its_own() -> None:
    into = ("into", ("shop.t", (("shard", "{database}"),)))
    tables = (("shop.people", (("mirror", "customers"),)), ("shop_*.t", (into, ("mirror", "all_of_t"))))
    DeltaSettings(path="lake", tables=tables)
    for pattern, name in (("shop.p*", "customers"), ("shop.people", ""), ("shop.people", "{schema}")):
        with pytest.raises(ConfigError, match=r"expected a name with .*\.mirror"):
            DeltaSettings(path="lake", tables=((pattern, (("mirror", name),)),))


def test_shards_take_up_rows_with_every_plan() -> None:
    into = ("into", ("shop.t", (("shard", "{database}"),)))
    with pytest.raises(ConfigError, match=r"where into is set @ \$.tables\['shop_\*.t'\].mirror_every"):
        DeltaSettings(path="lake", mirror_every_us=1, tables=(("shop_*.t", (into,)),))


def test_of_the_rules_that_match_a_table_the_last_that_says_something_wins() -> None:
    settings = DeltaSettings(
        path="lake",
        tables=(
            ("shop.*", (("mirror", None), ("history", "{table}_was"))),
            ("*.or?ers", (("mirror", "{table}"), ("mirror_deletes", "soft"))),
        ),
    )

    assert "changelog,mirror (soft),history" == settings.for_table(TableName("shop", "orders")).shape
    assert "changelog,history" == settings.for_table(TableName("shop", "Orders")).shape
    assert "changelog,mirror" == settings.for_table(TableName("Shop", "items")).shape


def test_a_rule_that_cannot_work_says_which_it_is() -> None:
    with pytest.raises(ConfigError, match=r"got none\)") as error:
        DeltaSettings(path="lake", tables=(("a.*", (("changelog", None), ("mirror", None))),))

    assert ("expected a changelog, a mirror or a history @ $.tables['a.*'] (got none)",) == error.value.problems
