"""The adversary: random members of the classes of attack that have ever made a mirror wrong, on real servers.

See ``tests/attack/README.md``.
"""
