"""Client of acpipe, which runs coding agents.

`Client` is for asyncio; `acpipe.sync.Client` has the same methods and blocks. `acpipe.models` has the types of the
protocol.
"""

from acpipe._binary import find_acpipe
from acpipe._chunks import AnyChunk, UnknownChunk, decode_chunk, encode_chunk
from acpipe._client import Client
from acpipe._errors import AcpipeError, AcpipeExited, AcpipeNotFound, ClientErrorKind, InvalidMessage, TurnFailed
from acpipe._handlers import Terminals
from acpipe._questions import PermissionRequest, QuestionRequest
from acpipe._session import Session
from acpipe._turn import Turn

__all__ = [
    "AcpipeError",
    "AcpipeExited",
    "AcpipeNotFound",
    "AnyChunk",
    "Client",
    "ClientErrorKind",
    "InvalidMessage",
    "PermissionRequest",
    "QuestionRequest",
    "Session",
    "Terminals",
    "Turn",
    "TurnFailed",
    "UnknownChunk",
    "decode_chunk",
    "encode_chunk",
    "find_acpipe",
]
