"""Garbage collection does not traverse modules and routes while requests wait."""

import asyncio
import gc

import pytest


@pytest.fixture
def thawed():
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_was_loaded_is_not_collected_again(tmp_path, thawed):
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    import uvicorn

    from likewise.service.app import create_app
    from likewise.service.run import _Server
    from likewise.service.settings import Settings

    app = create_app(tmp_path, Settings())
    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None)

    async def started():
        server = _Server(config, app.state.service)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        num_frozen, num_left = gc.get_freeze_count(), len(gc.get_objects())
        await server.shutdown()
        return num_frozen, num_left

    num_frozen, num_left = asyncio.run(started())
    app.state.service.close()
    assert num_frozen > 10_000
    assert num_left < num_frozen / 10
