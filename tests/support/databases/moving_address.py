"""An address that leads to one of several test servers, as a proxy's or a virtual one does."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from functools import partial

from databases.servers import Server

__all__ = ["MovingAddress"]


class MovingAddress:
    """An address that leads to one server at a time, as a proxy does; a move cuts the connections to the server before."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._sockets: list[socket.socket] = []
        self._flows = threading.Event()
        self._flows.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def leads_to(self, server: Server) -> None:
        """Leads what connects from now on to *server*; what is connected stays."""
        self._server = server

    def move(self, server: Server) -> None:
        """Leads all to *server*: what is connected is cut off."""
        self._server = server
        opened, self._sockets = self._sockets, []
        for each in opened:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def hold(self) -> None:
        """Carries nothing more, and cuts nothing off, as a network that is parted does."""
        self._flows.clear()

    def release(self) -> None:
        """Carries again, first what was held."""
        self._flows.set()

    def close(self) -> None:
        """Ends it."""
        self.release()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.move(self._server)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._start(partial(_carry, client, self._server, self._sockets, self._flows))

    def _start(self, target: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=target, daemon=True))
        self._threads[-1].start()


def _carry(client: socket.socket, to: Server, opened: list[socket.socket], flows: threading.Event) -> None:
    """Carries bytes both ways until one side ends."""
    with client, contextlib.suppress(OSError), socket.create_connection((to.host, to.port)) as server:
        opened += client, server
        others = {client: server, server: client}
        while True:
            for each in select.select([*others], (), ())[0]:
                piece = each.recv(65536)
                flows.wait()
                if not piece:
                    return
                others[each].sendall(piece)
