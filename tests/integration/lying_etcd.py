"""A proxy between agents and a real etcd. It passes all calls on, except those that a test tells it to lie about."""
import socket
import threading

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(body):
    return OK + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Proxy:
    """Speaks HTTP for one etcd member. `lies`: by path, the lie in place of each answer, or of every n-th."""

    def __init__(self, place):
        host, port = place.rsplit(":", 1)
        self.etcd = (host, int(port))
        self.lies = {}  # path -> function(say); the proxy hangs up when it returns
        self.every = 1
        self.calls = {}  # by path
        self.told = {}  # lies, by path
        self.sent = 0  # bytes of lies
        self.streams = set()  # connections to etcd
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.place = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.lies = {}
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def lie(self, lies, every=1):
        """Lies from now on. Open streams are cut, so that their clients ask again."""
        self.lies, self.every = lies, every
        for stream in list(self.streams):
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _say(self, connection, data):
        connection.sendall(data)
        self.sent += len(data)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            try:
                connection.settimeout(60)
                head, body = self._request(connection)
                if not head:
                    return
                path = head.split(b" ", 2)[1].decode()
                lie = self.lies.get(path)
                self.calls[path] = self.calls.get(path, 0) + 1
                if lie is None or self.calls[path] % self.every != 0:
                    return self._pass_on(connection, head, body)
                try:
                    lie(lambda data: self._say(connection, data))
                finally:
                    self.told[path] = self.told.get(path, 0) + 1
            except (OSError, ValueError):
                pass  # a malformed request, or the agent has gone

    @staticmethod
    def _request(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b"", b""
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        length = [int(line.split(b":")[1]) for line in head.split(b"\r\n")
                  if line.lower().startswith(b"content-length:")]
        while length and len(body) < length[0]:
            piece = connection.recv(65536)
            if not piece:
                return b"", b""
            body += piece
        return head, body

    def _pass_on(self, connection, head, body):
        with socket.create_connection(self.etcd, 10) as etcd:
            self.streams.add(etcd)
            etcd.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            etcd.settimeout(600)
            connection.settimeout(600)
            threading.Thread(target=self._hang_up_with, args=(connection, etcd), daemon=True).start()
            try:
                while piece := etcd.recv(65536):
                    connection.sendall(piece)
            finally:
                self.streams.discard(etcd)
                connection.shutdown(socket.SHUT_RDWR)  # close() alone would wait for the reading thread

    @staticmethod
    def _hang_up_with(connection, etcd):
        """An agent ends a stream by closing its connection."""
        try:
            connection.recv(1)
            etcd.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
