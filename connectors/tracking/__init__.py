"""Follows a log on the driver: records schema versions, checks TABLE_MAPs, makes plans.

Mending stopped tables (:mod:`connectors.recovery`) and writing (:mod:`connectors.pipeline`) do not belong here.

Open to other rooms: ``cascades``, ``continuity``, ``copier``, ``first_schema``, ``prepared_transactions``,
``proven_schemas``, ``ranges``, ``recorded``, ``rereading``, ``schema_file``, ``scope``, ``sources``, ``stop_reasons``, ``tracker``, ``type_options``, ``walk``.
"""
