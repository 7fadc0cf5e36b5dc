"""The edge in: readers of change logs, the Spark data source, and the parts that tie readers to sinks."""

__all__: list[str] = []
