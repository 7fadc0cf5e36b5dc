"""The composition: carries a log's plans into sinks, one after the other.

What a reader or a sink does by itself does not belong here.

Open to other rooms: ``comparing``, ``continuous``, ``dry_run``, ``lakes``, ``opening``, ``pipeline``, ``run``, ``signals``.
"""
