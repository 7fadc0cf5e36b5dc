"""What the product is made of: a bill of materials, the licences, and the known vulnerabilities. ``make audit`` prints it.

The bill is CycloneDX 1.5, as uv exports it from ``uv.lock``, with the jars of :data:`connectors.spark.jvm.DELTA_JARS`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from connectors.spark.jvm import DELTA_JARS, Jar

__all__ = ["bill", "licence", "refused"]

_LOCKED = ("--locked", "--no-dev", "--quiet")
_REFUSED = ("AGPL", "GNU AFFERO", "GPL", "GNU GENERAL PUBLIC", "SSPL", "BUSL", "COMMONS CLAUSE")
_LESSER = ("LGPL", "LESSER GENERAL PUBLIC")
_UNKNOWN = "not said"


def bill() -> dict[str, Any]:
    """The bill of materials as a CycloneDX document."""
    exported = subprocess.run(
        ["uv", "export", *_LOCKED, "--all-extras", "--format", "cyclonedx1.5"],
        capture_output=True,
        text=True,
        check=True,
    )
    document: dict[str, Any] = json.loads(exported.stdout)
    document["components"] += map(_component, DELTA_JARS)
    return document


def _component(jar: Jar) -> dict[str, Any]:
    purl = f"pkg:maven/{jar.organisation}/{jar.name}@{jar.revision}"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": jar.organisation,
        "name": jar.name,
        "version": jar.revision,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }


def licence(found: PackageMetadata) -> str:
    """The licence that a distribution names: its expression, else its classifiers, else the first line of its own words."""
    if expression := found.get("License-Expression"):
        return str(expression)
    prefix = "License :: "
    classifiers = [line.rsplit(" :: ", 1)[1] for line in found.get_all("Classifier") or () if line.startswith(prefix)]
    return (
        ", ".join(each for each in classifiers if each != "OSI Approved")
        or (str(found.get("License") or "").strip() or _UNKNOWN).splitlines()[0]
    )


def refused(name: str) -> bool:
    """Whether a product under the Apache License may not be handed on with a part under that licence, or nobody knows."""
    upper = name.upper()
    for lesser in _LESSER:
        upper = upper.replace(lesser, "")
    # Of alternatives one that may be handed on is enough.
    return name in (_UNKNOWN, "UNKNOWN") or all(
        any(word in choice for word in _REFUSED) for choice in upper.split(" OR ")
    )


def _licences(components: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Names of components by licence."""
    found: dict[str, list[str]] = defaultdict(list)
    for component in components:
        name = str(component["name"])
        try:
            said = component["licenses"][0]["license"]["id"] if "licenses" in component else licence(metadata(name))
        except PackageNotFoundError:
            said = "not installed on this system"
        found[said].append(name)
    return dict(sorted(found.items()))


def main(out: Path) -> int:
    """Writes the bill to *out*, prints the rest; 1 where a licence is refused or a vulnerability is known."""
    document = bill()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document, indent=2) + "\n")
    print(f"bill of materials: {out}, {len(document['components'])} components")
    found = _licences(document["components"])
    for said, names in found.items():
        print(f"{'REFUSED  ' if refused(said) else ''}{said}: {', '.join(sorted(set(names)))}")
    audited = subprocess.run(["uv", "audit", *_LOCKED], capture_output=True, text=True, check=False)
    # It ends with 1 for what it found, and with 2 where it could not look.
    vulnerable = audited.returncode == 1
    if audited.returncode > 1:
        print("vulnerabilities: NOT CHECKED, since the database of them (OSV) cannot be asked from here")
    print(audited.stdout + audited.stderr)
    return int(vulnerable or any(map(refused, found)))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
