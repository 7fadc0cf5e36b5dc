"""The compose file offers the same servers, configured alike, as those that the tests start by themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from connectors.config import KafkaSource, load_config
from databases.server_builds import BUILDS
from databases.servers import server_options

DOCKER = Path(__file__).parent.parent / "docker"
SUPPORT = Path(__file__).parent / "support/databases"

# Of the place where a server runs, not of how it behaves.
PLACES = {"bind_address", "datadir", "init_file", "log_error", "pid_file", "secure_file_priv", "socket", "tmpdir"}
SET_BY_COMMAND = {"port", "report_port", "server_id"}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    return services


def _options(lines: list[str]) -> dict[str, str]:
    pairs = [line.partition("=") for line in lines if line and not line.startswith(("#", "["))]
    return {name.strip(): value.strip() for name, _, value in pairs}


def test_every_server_of_the_tests_is_there(services: dict[str, Any]) -> None:
    assert set(BUILDS) == set(services)


def test_environment_file_points_at_the_published_ports(services: dict[str, Any]) -> None:
    urls = _options((DOCKER / "servers.env").read_text().splitlines())

    published = {f"HISTORIAN_TEST_{name.upper()}": each["ports"][0].split(":")[1] for name, each in services.items()}
    assert published == {name: str(urlsplit(url).port) for name, url in urls.items()}


OF_THIS_MACHINE = {"innodb_use_native_aio"}
"""Many servers of tests share the kernel's few contexts; a container's server has its own."""


@pytest.mark.parametrize("name", BUILDS)
def test_server_is_configured_like_ours(name: str, services: dict[str, Any], tmp_path: Path) -> None:
    ours = _options(list(server_options(BUILDS[name], tmp_path, 3306)))

    files = [volume.split(":")[0] for volume in services[name]["volumes"] if ".cnf" in volume]
    theirs = _options([line for file in files for line in (DOCKER / file).read_text().splitlines()])

    kept = {key: value for key, value in ours.items() if key not in PLACES | SET_BY_COMMAND | OF_THIS_MACHINE}
    kept["log_bin"] = "binlog"  # ours has a path in front
    assert kept == {key: value for key, value in theirs.items() if not key.startswith("innodb_") or key in kept}


@pytest.mark.parametrize("name", BUILDS)
def test_server_identity_is_its_port(name: str, services: dict[str, Any]) -> None:
    port = services[name]["ports"][0].split(":")[1]

    assert [f"--server-id={port}", f"--report-port={port}"] == services[name]["command"]


@pytest.mark.parametrize("name", BUILDS)
def test_service_can_be_started(name: str, services: dict[str, Any]) -> None:
    """What the Compose specification asks for, as far as it can be seen without an engine."""
    service = services[name]

    assert set(service) <= {"image", "command", "environment", "healthcheck", "platform", "ports", "tmpfs", "volumes"}
    assert service["image"].split(":")[0] == ("mariadb" if name.startswith("mariadb") else "mysql")
    assert [port.split(":")[0] for port in service["ports"]] == ["127.0.0.1"]
    mounted = [volume.split(":") for volume in service["volumes"]]
    assert [] == [source for source, _, mode in mounted if mode != "ro" or not (DOCKER / source).is_file()]
    assert service["healthcheck"]["test"][0] == "CMD"


def test_ports_are_given_once(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service["ports"]]

    assert len(set(ports)) == len(BUILDS)


def test_the_example_of_kafka_fits_together() -> None:
    """What the parts call one another, as far as it can be seen without an engine."""
    directory = DOCKER / "kafka"
    services = yaml.safe_load((directory / "compose.yaml").read_text())["services"]
    connector = json.loads((directory / "debezium.json").read_text())
    source = load_config(directory / "shop.yaml").source

    assert isinstance(source, KafkaSource)
    inside = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")[0].removeprefix("INSIDE://")
    assert {inside} == {
        source.brokers,
        services["connect"]["environment"]["BOOTSTRAP_SERVERS"],
        connector["schema.history.internal.kafka.bootstrap.servers"],
    }
    assert connector["database.hostname"] in services
    assert connector["database.password"] == services["mysql"]["environment"]["MYSQL_ROOT_PASSWORD"]
    database = services["mysql"]["environment"]["MYSQL_DATABASE"]
    assert (f"{connector['topic.prefix']}.{database}.*",) == source.topics
    assert "true" == connector["value.converter.schemas.enable"]
    mounted = [volume.split(":") for volume in services["historian"]["volumes"] if volume.startswith("./")]
    assert ["./shop.yaml", "./stock.yaml", "./maxwell.yaml"] == [place for place, _, _ in mounted]
    assert services["historian"]["command"][1] in [at for _, at, _ in mounted]
    assert [] == [
        each
        for name in services
        for port in services[name].get("ports", ())
        if not (each := port).startswith("127.0.0.1:")
    ]


def revision_of(part: str, jar: str = "") -> str:
    """Which revision of a jar the tests start."""
    lines = [line.split() for line in (SUPPORT / f"{part}_jars.txt").read_text().splitlines() if line[0] != "#"]
    (revision,) = (revision for _, name, revision, _ in lines if name == (jar or part))
    return revision


def test_other_producers_of_the_example_fit_together() -> None:
    """PostgreSQL with Debezium, and Maxwell with a server that it knows, as the tests start them."""
    directory = DOCKER / "kafka"
    services = yaml.safe_load((directory / "compose.yaml").read_text())["services"]
    connector = json.loads((directory / "postgresql.json").read_text())
    stock, maxwell = (load_config(directory / f"{name}.yaml").source for name in ("stock", "maxwell"))
    options = dict(each.removeprefix("--").split("=", 1) for each in services["maxwell"]["command"] if "=" in each)

    assert isinstance(stock, KafkaSource)
    assert isinstance(maxwell, KafkaSource)
    assert (f"{connector['topic.prefix']}.public.*",) == stock.topics
    assert connector["database.hostname"] in services
    assert connector["database.dbname"] == services["postgres"]["environment"]["POSTGRES_DB"]
    assert connector["database.password"] == services["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert options["host"] in services
    assert options["password"] == services[options["host"]]["environment"]["MYSQL_ROOT_PASSWORD"]
    assert options["kafka.bootstrap.servers"] == maxwell.brokers == stock.brokers
    assert (options["kafka_topic"],) == (options["ddl_kafka_topic"],) == maxwell.topics
    assert "maxwell" == maxwell.format
    assert revision_of("connect", "debezium-connector-mysql").startswith(
        services["connect"]["image"].rpartition(":")[2] + "."
    )
    assert f"v{revision_of('maxwell')}" == services["maxwell"]["image"].rpartition(":")[2]
