"""A program on the generated types: mypy checks it, then it runs."""
import pydantic

import bundle
import chunk
import config
import turn_summary


def text(params: bundle.ChunkParams) -> str:
    """The discriminator of a union narrows its type."""
    inner = params.chunk.root
    return inner.delta if isinstance(inner, bundle.TextDeltaChunk) else ""


received = {"sessionId": "work", "turnId": None, "seq": 4, "chunk": {"type": "text-delta", "id": "1", "delta": "Hello!"}}
assert text(bundle.ChunkParams.model_validate(received)) == "Hello!"
assert isinstance(chunk.Chunk.model_validate(received["chunk"]).root, chunk.TextDeltaChunk)

for wrong, problem in (
    ({"type": "text-delta", "id": "1"}, "missing"),
    ({"type": "unheard-of"}, "union_tag_invalid"),          # found by the discriminator, not by trying every variant
):
    try:
        bundle.Chunk.model_validate(wrong)
    except pydantic.ValidationError as error:
        assert [one["type"] for one in error.errors()] == [problem], error
    else:
        raise AssertionError(f"{wrong} is not refused")

assert bundle.ConnectParams().args == []
assert config.ConfigFile.model_validate({"agent": "claude"}).agent == "claude"
assert "stopReason" in turn_summary.TurnSummary.model_fields
