"""The edge out: the Delta changelog and the Delta mirror."""

__all__: list[str] = []
