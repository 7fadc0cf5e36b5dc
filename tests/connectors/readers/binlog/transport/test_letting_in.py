"""What lets a connection in may change while a process runs: files are read as they are by then."""

from __future__ import annotations

import shutil
from pathlib import Path

from connectors.readers.binlog.transport.connection import NotLetIn, ServerAddress, TlsSettings
from databases.servers import Server


def test_certificates_are_read_again_when_their_files_change(mysql9: Server, tmp_path: Path) -> None:
    assert mysql9.directory is not None
    made, authority = mysql9.directory / "data", tmp_path / "ca.pem"
    tls = TlsSettings(mode="verify_ca", ca=str(authority))
    reached = ServerAddress(
        host=mysql9.host, port=mysql9.port, user=mysql9.user, password=mysql9.password, tls=tls, timeout_s=10
    )
    found = []
    for name in ("client-cert.pem", "ca.pem", "client-cert.pem"):
        shutil.copy(made / name, authority)
        try:
            reached.connect().close()
            found.append(True)
        except NotLetIn:
            found.append(False)
    assert [False, True, False] == found
