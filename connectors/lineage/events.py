"""Events of OpenLineage, as the JSON that its servers take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from connectors.lineage.datasets import Came, Dataset, Link
from historian.errors import ConfigError

if TYPE_CHECKING:
    from openlineage.client.facet_v2 import column_lineage_dataset

__all__ = ["event", "require_library"]

_CHARACTERS = 10_000


def require_library() -> None:
    """Raises :class:`ConfigError` where the package that makes events is not installed."""
    try:
        import openlineage.client.event_v2  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "openlineage":
            raise
        problem = 'no package for OpenLineage @ $.run.openlineage (pip install "pyspark-historian[openlineage]")'
        raise ConfigError("a package is missing", problems=(problem,)) from None


def event(
    kind: str,
    *,
    run: str,
    job: tuple[str, str],
    is_stream: bool,
    time_us: int,
    links: Sequence[Link] = (),
    reason: str = "",
) -> dict[str, Any]:
    """An event of a run.

    Args:
        kind: START, RUNNING, COMPLETE, ABORT or FAIL.
        run: its UUID.
        job: namespace and name.
        is_stream: whether the job goes on until it is ended.
        links: tables and targets that it tells of.
        reason: the error that ended the run.
    """
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import error_message_run, job_type_job, processing_engine_run
    from openlineage.client.serde import Serde

    release = version("pyspark-historian")
    by = f"urn:pyspark-historian:{release}"
    facets: dict[str, Any] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=release, name="pyspark-historian", producer=by
        )
    }
    if reason:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=reason[:_CHARACTERS], programmingLanguage="PYTHON", producer=by
        )
    kind_of_job = job_type_job.JobTypeJobFacet(
        processingType="STREAMING" if is_stream else "BATCH", integration="HISTORIAN", jobType="CONNECTOR", producer=by
    )
    made = RunEvent(
        eventType=RunState[kind],
        eventTime=datetime.fromtimestamp(time_us / 1e6, timezone.utc).isoformat(timespec="milliseconds"),
        run=Run(runId=run, facets=facets),
        job=Job(namespace=job[0], name=job[1], facets={"jobType": kind_of_job}),
        inputs=_inputs(links, by),
        outputs=_outputs(links, by),
        producer=by,
    )
    return dict(Serde.to_dict(made))


def _inputs(links: Iterable[Link], by: str) -> list[Any]:
    from openlineage.client.event_v2 import InputDataset

    sources = {(each.namespace, each.name): each for link in links for each in link.sources}
    return [
        InputDataset(namespace=each.namespace, name=each.name, facets={"schema": _schema(each, by)})
        for each in sources.values()
    ]


def _outputs(links: Iterable[Link], by: str) -> list[Any]:
    from openlineage.client.event_v2 import OutputDataset

    return [
        OutputDataset(
            namespace=link.target.namespace,
            name=link.target.name,
            facets={"schema": _schema(link.target, by), "columnLineage": _lineage(link, by)},
        )
        for link in links
        if link.target is not None
    ]


def _schema(dataset: Dataset, by: str) -> Any:
    from openlineage.client.facet_v2 import schema_dataset

    fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in dataset.columns]
    return schema_dataset.SchemaDatasetFacet(fields=fields, producer=by)


def _lineage(link: Link, by: str) -> Any:
    from openlineage.client.facet_v2 import column_lineage_dataset as facets

    return facets.ColumnLineageDatasetFacet(
        fields={
            name: facets.Fields(inputFields=[_field(each, _direct(each)) for each in came])
            for name, came in link.came.items()
        },
        dataset=[_field(each, facets.Transformation(type="INDIRECT", subtype="FILTER")) for each in link.filters],
        producer=by,
    )


def _direct(came: Came) -> column_lineage_dataset.Transformation:
    from openlineage.client.facet_v2 import column_lineage_dataset

    return column_lineage_dataset.Transformation(
        type="DIRECT",
        subtype="TRANSFORMATION" if came.made else "IDENTITY",
        description=came.made or None,
        masking=came.masked,
    )


def _field(came: Came, how: column_lineage_dataset.Transformation) -> column_lineage_dataset.InputField:
    from openlineage.client.facet_v2 import column_lineage_dataset

    return column_lineage_dataset.InputField(
        namespace=came.source.namespace, name=came.source.name, field=came.column, transformations=[how]
    )
