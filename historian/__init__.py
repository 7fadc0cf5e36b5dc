"""The core: positions, table schemas, their edits and history, and the changelog. No Spark, no server, no lake."""

__all__: list[str] = []
