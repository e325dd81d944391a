"""Makes asyncio's tests run on uvloop: `python -m pytest -p tests.on_uvloop`."""

import asyncio

import uvloop

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
