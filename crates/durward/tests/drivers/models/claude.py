"""What a model of Anthropic's says in these tests, wherever it is served."""


def message(model, content=(), stop=None, written=0):
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": list(content), "stop_reason": stop,
            "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": written}}


def events(model, **last):
    """`last` is what a cloud adds to the last event."""
    yield {"type": "message_start", "message": message(model)}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for text in ("bonjour, ", "été\n"):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop", **last}
