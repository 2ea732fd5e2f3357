"""Raw gRPC: what drivers hide. Status codes by number, tickets and messages that no driver would send.

Messages are written by hand: a field of protobuf is its number and wire type, then its bytes. The few that are needed are simpler
spelled than generated, and a generated client would refuse to send the broken ones.
"""

import grpc
import pytest

from asofd import rows

SERVICE = "/arrow.flight.protocol.FlightService/"
TYPE = "type.googleapis.com/arrow.flight.protocol.sql."
CODE = grpc.StatusCode


# --- protobuf ---------------------------------------------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(message: bytes) -> list[tuple[int, bytes | int]]:
    """The fields of a message, of the wire types varint, 64-bit and length-delimited."""

    def number(at):
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value, at

    found, at = [], 0
    while at < len(message):
        key, at = number(at)
        if key & 7 == 0:
            value, at = number(at)
        else:
            length, at = (8, at) if key & 7 == 1 else number(at)
            value, at = message[at : at + length], at + length
        found.append((key >> 3, value))
    return found


def first(message: bytes, number: int):
    return next((value for n, value in fields(message) if n == number), None)


def any_of(name: str, message: bytes) -> bytes:
    return field(1, TYPE + name) + field(2, message)


def descriptor(command: bytes) -> bytes:
    return field(1, 2) + field(2, command)


# --- calls ------------------------------------------------------------------------------------------------------------------------


class Raw:
    """One channel, and one session: the key that the server mints is sent back."""

    def __init__(self, server):
        self.channel = grpc.insecure_channel(f"{server.host}:{server.port}")
        self.key = None

    def _metadata(self, metadata):
        return [("authorization", self.key)] if self.key and metadata is None else metadata

    def _call(self, kind: str, name: str, request, metadata=None):
        stub = getattr(self.channel, kind)(SERVICE + name, request_serializer=bytes, response_deserializer=bytes)
        call = stub(request, timeout=30, metadata=self._metadata(metadata))
        found = list(call)
        for key, value in call.initial_metadata() or ():
            if key == "authorization":
                self.key = value
        return found

    def flight_info(self, command: bytes, metadata=None) -> bytes:
        stub = self.channel.unary_unary(SERVICE + "GetFlightInfo", request_serializer=bytes, response_deserializer=bytes)
        answer, call = stub.with_call(descriptor(command), timeout=30, metadata=self._metadata(metadata))
        for key, value in call.initial_metadata() or ():
            if key == "authorization":
                self.key = value
        return answer

    def query(self, sql: str) -> list[bytes]:
        """The DoGet messages of a statement."""
        return self.get(self.ticket(sql))

    def ticket(self, sql: str) -> bytes:
        info = self.flight_info(any_of("CommandStatementQuery", field(1, sql)))
        endpoints = [value for number, value in fields(info) if number == 3]
        assert len(endpoints) == 1, "one endpoint, also for no rows"
        assert first(endpoints[0], 2) is None, "an empty location"
        return first(first(endpoints[0], 1), 1)

    def get(self, ticket: bytes) -> list[bytes]:
        return self._call("unary_stream", "DoGet", field(1, ticket))

    def act(self, name: str, body: bytes = b"", metadata=None) -> list[bytes]:
        return [first(result, 1) or b"" for result in self._call("unary_stream", "DoAction", field(1, name) + field(2, body), metadata)]

    def put(self, messages: list[bytes]) -> list[bytes]:
        return self._call("stream_stream", "DoPut", iter(messages))


@pytest.fixture
def raw(golden_server):
    raw = Raw(golden_server)
    yield raw
    assert golden_server.alive()
    raw.query("SELECT 1")
    raw.channel.close()


def refused(call, *arguments) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments)
    return caught.value


# --- status codes -----------------------------------------------------------------------------------------------------------------

STATUSES = [
    ("SELEC 1", CODE.INVALID_ARGUMENT, ""),
    ("SELECT nope FROM golden.selectors", CODE.INVALID_ARGUMENT, ""),
    ("SELECT * FROM golden.selectors TIMESTAMP AS OF 'yesterday'", CODE.INVALID_ARGUMENT, ""),
    ("SELECT * FROM golden.nowhere", CODE.NOT_FOUND, ""),
    ("SELECT * FROM golden.selectors VERSION AS OF 9", CODE.NOT_FOUND, ""),
    ("SELECT * FROM golden.selectors TIMESTAMP AS OF '2026-01-01'", CODE.NOT_FOUND, ""),
    ("SELECT * FROM golden.selectors TIMESTAMP AS OF '2999-01-01'", CODE.NOT_FOUND, ""),
    ("SELECT * FROM golden.cleaned_log VERSION AS OF 5", CODE.NOT_FOUND, ""),
    ("SELECT * FROM golden.vacuumed VERSION AS OF 1", CODE.FAILED_PRECONDITION, "out of retention:"),
    ("RESTORE TABLE golden.vacuumed TO VERSION AS OF 1", CODE.FAILED_PRECONDITION, "out of retention:"),
    ("SELECT * FROM golden.future_reader", CODE.UNIMPLEMENTED, ""),
    ("INSERT INTO golden.future_writer VALUES (4, 'd')", CODE.UNIMPLEMENTED, ""),
]


@pytest.mark.parametrize("sql, code, start", STATUSES, ids=[status[0][:60] for status in STATUSES])
def test_status_of_errors(raw, sql, code, start):
    error = refused(raw.query, sql)
    assert error.code() == code, error.details()
    assert error.details().startswith(start), error.details()


# --- messages ---------------------------------------------------------------------------------------------------------------------


def test_the_schema_comes_first_also_for_no_rows(raw):
    assert len(raw.query("SELECT d FROM golden.selectors VERSION AS OF 0")) >= 1


def test_a_command_that_is_no_any_is_sql(raw):
    assert raw.flight_info(b"SELECT 1")


def test_a_ticket_is_opaque_and_keeps_its_moment(raw):
    """A ticket reads what was planned, `&` in the text and all."""
    ticket = raw.ticket("SELECT '&a=b&' AS x, d FROM golden.selectors VERSION AS OF 1")
    assert b"mon" in b"".join(raw.get(ticket))


@pytest.mark.parametrize("ticket", [b"", b"garbage", b"\x00" * 100, b"SELECT 1", any_of("TicketStatementQuery", field(1, b"garbage"))])
def test_garbage_tickets(raw, ticket):
    assert refused(raw.get, ticket).code() in (CODE.INVALID_ARGUMENT, CODE.UNAUTHENTICATED, CODE.PERMISSION_DENIED, CODE.NOT_FOUND)


def test_a_changed_ticket_is_refused(raw):
    ticket = bytearray(raw.ticket("SELECT d FROM golden.selectors VERSION AS OF 1"))
    refusals = 0
    for at in range(0, len(ticket), max(1, len(ticket) // 16)):
        changed = bytes(ticket[:at] + bytes([ticket[at] ^ 1]) + ticket[at + 1 :])
        try:
            raw.get(changed)
        except grpc.RpcError as error:
            assert error.code() not in (CODE.INTERNAL, CODE.UNKNOWN), error.details()
            refusals += 1
    assert refusals >= 10


@pytest.mark.parametrize("command", [b"\xff\xfe", any_of("NoSuchCommand", b""), any_of("CommandStatementQuery", b"\xff"), field(1, "x") + field(2, b"y")])
def test_garbage_commands(raw, command):
    assert refused(raw.flight_info, command).code() in (CODE.INVALID_ARGUMENT, CODE.UNIMPLEMENTED)


def test_unknown_actions(raw):
    assert refused(raw.act, "NoSuchAction").code() in (CODE.INVALID_ARGUMENT, CODE.UNIMPLEMENTED)
    assert refused(raw.act, "CreatePreparedStatement", b"\xff\xff").code() == CODE.INVALID_ARGUMENT


def test_an_upload_of_nothing(raw):
    """A DoPut closed before its first message is answered at once."""
    assert refused(raw.put, []).code() == CODE.INVALID_ARGUMENT


def test_prepared_handles(raw):
    made = raw.act("CreatePreparedStatement", any_of("ActionCreatePreparedStatementRequest", field(1, "SELECT d FROM golden.selectors VERSION AS OF ?")))
    handle = first(first(made[0], 2), 1)
    close = any_of("ActionClosePreparedStatementRequest", field(1, handle))
    raw.act("ClosePreparedStatement", close)
    raw.act("ClosePreparedStatement", close)
    error = refused(raw.flight_info, any_of("CommandPreparedStatementQuery", field(1, handle)))
    assert error.code() in (CODE.NOT_FOUND, CODE.INVALID_ARGUMENT)


# --- sessions ---------------------------------------------------------------------------------------------------------------------


def option(name: str, value: str) -> bytes:
    """An entry of SetSessionOptionsRequest.session_options with a string value."""
    return field(1, field(1, name) + field(2, field(1, value)))


def test_session_options_are_answered_one_by_one(raw):
    answer = raw.act("SetSessionOptions", option("catalog", "lake") + option("no_such_option", "x"))
    errors = [value for number, value in fields(answer[0]) if number == 1]
    assert [first(error, 1) for error in errors] == [b"no_such_option"], "only the unknown option is in error"
    names = {first(entry, 1) for number, entry in fields(raw.act("GetSessionOptions")[0]) if number == 1}
    assert {b"catalog", b"schema"} <= names


def test_a_session_can_be_closed(raw):
    raw.query("SELECT 1")
    assert raw.key is None or raw.key.startswith("Bearer ")
    assert raw.act("CloseSession")
    raw.key = None


def test_a_made_up_key_is_no_one_elses_session(golden_server, raw):
    with golden_server.connect() as connection:
        rows(connection, "SELECT 1")
    try:
        raw.flight_info(any_of("CommandStatementQuery", field(1, "SELECT 1")), metadata=[("authorization", "Bearer made-up")])
    except grpc.RpcError as error:
        assert error.code() == CODE.UNAUTHENTICATED


def test_basic_credentials_without_padding(golden_server):
    """The Go driver sends base64 without padding. On an anonymous server any credentials are taken or refused, never garbled."""
    raw = Raw(golden_server)
    try:
        raw.flight_info(any_of("CommandStatementQuery", field(1, "SELECT 1")), metadata=[("authorization", "Basic dXNlcjpwYXNz")])
        raw.flight_info(any_of("CommandStatementQuery", field(1, "SELECT 1")), metadata=[("authorization", "Basic dTpwYXNzdw")])
    except grpc.RpcError as error:
        assert error.code() == CODE.UNAUTHENTICATED, error.details()
