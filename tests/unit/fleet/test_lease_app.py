"""The lease service's routes, without a socket: who may ask for what, and which addresses the answers name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest

from awm_factory.client.wire import ErrorReply, Lease, Seat
from awm_factory.fleet.lease.app import LeaseApp
from fleet_support import Fake, House, house, until

pytestmark = pytest.mark.anyio

ENV = "toy_library"
TOKEN = {"authorization": "Bearer secret"}
ASKED = {"env_id": ENV, "task_id": 0}


@dataclass
class Served:
    here: House
    outside: httpx.AsyncClient
    inside: httpx.AsyncClient
    fake: Fake


@asynccontextmanager
async def served(capacity: int = 4) -> AsyncIterator[Served]:
    fake = Fake(ENV, "10.0.0.1", capacity=capacity)
    async with house(fake, queue=1) as here:

        def client(address: str, *, direct: bool) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(LeaseApp(here.leases, "secret", direct=direct))
            return httpx.AsyncClient(transport=transport, base_url=address, headers=TOKEN)

        async with client("http://127.0.0.1:20500", direct=False) as outside, client("http://lease:8080", direct=True) as inside:
            yield Served(here, outside, inside, fake)


def code(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, ErrorReply.model_validate_json(reply.content).error.code


async def test_a_lease_taken_on_the_host_names_addresses_of_the_service_alone() -> None:
    async with served() as it:
        reply = await it.outside.post("/leases", json=ASKED)
        lease = Lease.model_validate_json(reply.content)
        assert reply.status_code == 201
        assert lease.agent_url == f"http://127.0.0.1:20500/agent/{lease.episode_id}/mcp"
        assert lease.control_url == f"http://127.0.0.1:20500/leases/{lease.lease_id}/control"
        called = await it.outside.post(lease.agent_url, content=b'{"a":1}', headers={"authorization": ""})
        assert called.json()["calls"] == ['{"a":1}']
        assert (await it.outside.post(f"{lease.control_url}/verify", json={})).json() == {
            "plane": "control",
            "calls": ['{"a":1}'],
        }
        assert (await it.outside.get(f"/leases/{lease.lease_id}")).json() == lease.model_dump()


async def test_a_lease_taken_on_the_trainers_network_names_the_container_itself_for_the_agent() -> None:
    async with served() as it:
        lease = Lease.model_validate_json((await it.inside.post("/leases", json=ASKED)).content)
        assert lease.agent_url == f"http://host-10.0.0.1:8001/episodes/{lease.episode_id}/mcp"
        assert lease.control_url == f"http://lease:8080/leases/{lease.lease_id}/control"


@pytest.mark.parametrize("path", ["/leases", "/status", "/metrics", "/leases/" + "0" * 32, "/elsewhere"])
@pytest.mark.parametrize("header", [{}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}])
async def test_everything_but_health_asks_for_the_token(path: str, header: dict[str, str]) -> None:
    async with served() as it:
        assert code(await it.outside.get(path, headers={"authorization": "", **header})) == (401, "token")
        assert (await it.outside.get("/health", headers={"authorization": ""})).json() == {"status": "healthy"}


async def test_no_spelling_of_an_agents_path_leads_to_a_control_route() -> None:
    async with served() as it:
        lease = Lease.model_validate_json((await it.outside.post("/leases", json=ASKED)).content)
        for rest in ("reset", "mcp/../reset", "mcp/..%2freset", "mcp%2f..%2freset", "%6dcp", "mcp//", "mcp/verify"):
            url = f"http://127.0.0.1:20500/agent/{lease.episode_id}/{rest}"
            reply = await it.outside.post(url, headers={"authorization": ""})
            assert code(reply) == (401, "token"), rest
        assert list(it.fake.episodes) == [lease.episode_id]


async def test_only_the_routes_that_a_trainer_needs_are_passed_on() -> None:
    async with served() as it:
        lease = Lease.model_validate_json((await it.outside.post("/leases", json=ASKED)).content)
        for rest in ("", "/verify", "/reset", "/diff", "/db", "/mcp", "/snapshot", "/restore"):
            assert (await it.outside.post(lease.control_url + rest, json={})).status_code == 200, rest
        for rest in ("/../../health", "/%76erify", "/episodes", "/mcp/x"):
            assert code(await it.outside.post(lease.control_url + rest, json={}))[0] == 404, rest


async def test_a_fork_answers_a_seat_whose_addresses_work_and_which_can_be_dropped() -> None:
    async with served() as it:
        lease = Lease.model_validate_json((await it.outside.post("/leases", json=ASKED)).content)
        reply = await it.outside.post(f"{lease.control_url}/fork")
        twin = Seat.model_validate_json(reply.content)
        assert reply.status_code == 201 and twin.episode_id != lease.episode_id
        assert (await it.outside.post(twin.agent_url, content=b"1")).json()["calls"] == ["1"]
        assert (await it.outside.post(f"{twin.control_url}/verify", json={})).json()["calls"] == ["1"]
        assert (await it.outside.post(f"{lease.control_url}/verify", json={})).json()["calls"] == []
        assert code(await it.outside.delete(lease.control_url)) == (405, "no_method")
        assert (await it.outside.delete(twin.control_url)).status_code == 204
        assert code(await it.outside.post(twin.agent_url, content=b"1"))[0] == 410
        assert (await it.outside.get(f"/leases/{lease.lease_id}")).status_code == 200


async def test_a_twin_is_reached_under_its_own_lease_only() -> None:
    async with served() as it:
        one, other = [Lease.model_validate_json((await it.outside.post("/leases", json=ASKED)).content) for _ in range(2)]
        twin = Seat.model_validate_json((await it.outside.post(f"{one.control_url}/fork")).content)
        stolen = twin.control_url.replace(one.lease_id, other.lease_id)
        assert code(await it.outside.post(f"{stolen}/verify", json={})) == (404, "unknown_episode")


async def test_heartbeat_release_and_what_is_answered_afterwards() -> None:
    async with served() as it:
        lease = Lease.model_validate_json((await it.outside.post("/leases", json=ASKED)).content)
        it.here.clock.now += 5
        beat = await it.outside.post(f"/leases/{lease.lease_id}/heartbeat", json={"ttl": 30})
        assert Lease.model_validate_json(beat.content).expires_at == it.here.clock.now + 30
        assert [(await it.outside.delete(f"/leases/{lease.lease_id}")).status_code for _ in range(2)] == [204, 204]
        for reply in (
            await it.outside.get(f"/leases/{lease.lease_id}"),
            await it.outside.post(f"/leases/{lease.lease_id}/heartbeat"),
            await it.outside.post(lease.agent_url, content=b"{}"),
            await it.outside.post(f"{lease.control_url}/verify"),
        ):
            assert code(reply) == (410, "released")
        assert code(await it.outside.get("/leases/" + "0" * 32)) == (404, "unknown_lease")


async def test_a_full_queue_says_when_to_come_again() -> None:
    async with served(capacity=1) as it:
        await it.outside.post("/leases", json=ASKED)
        waiting = asyncio.create_task(it.outside.post("/leases", json=ASKED | {"wait": 0.2}))
        await until(lambda: it.here.leases.status().waiting == 1)
        reply = await it.outside.post("/leases", json=ASKED)
        assert code(reply) == (429, "queue_full") and int(reply.headers["retry-after"]) > 0
        late = await waiting
        assert code(late) == (429, "full") and int(late.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    ("body", "said"), [({"env": ENV}, "env_id"), ({**ASKED, "wat": 1}, "wat"), ({**ASKED, "ttl": 0}, "ttl"), ([], "the body")]
)
async def test_a_body_that_makes_no_sense_is_refused_by_its_field(body: object, said: str) -> None:
    async with served() as it:
        reply = await it.outside.post("/leases", json=body)
        assert code(reply) == (422, "body") and reply.json()["error"]["message"].startswith(said)


async def test_a_web_page_of_another_site_is_refused_and_an_odd_host_gets_no_addresses() -> None:
    async with served() as it:
        assert code(await it.outside.get("/status", headers={"origin": "http://evil.example"})) == (403, "foreign_origin")
        assert (await it.outside.get("/status", headers={"origin": "http://127.0.0.1:20500"})).status_code == 200
        assert code(await it.outside.post("/leases", json=ASKED, headers={"host": "a/b?c"})) == (400, "host")
        assert it.here.leases.status().leases == 0


@pytest.mark.parametrize("queued", [True, False])
async def test_a_caller_who_hangs_up_before_the_answer_holds_nothing(queued: bool) -> None:
    async with served(capacity=1) as it:
        if queued:
            lease = Lease.model_validate_json((await it.outside.post("/leases", json=ASKED)).content)
        app = LeaseApp(it.here.leases, "secret", direct=False)
        left = asyncio.Event()
        body = iter([{"type": "http.request", "body": b'{"env_id": "toy_library"}', "more_body": False}])

        async def receive() -> dict[str, object]:
            if (message := next(body, None)) is not None:
                return message
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: object) -> None:
            raise AssertionError(f"nobody listens to {message}")

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/leases",
            "raw_path": b"/leases",
            "query_string": b"",
            "headers": [(b"authorization", b"Bearer secret"), (b"host", b"x")],
            "client": ("10.0.0.9", 1),
        }
        if not queued:
            it.fake.before_answer = lambda method, path: left.set()
        asking = asyncio.create_task(app(scope, receive, send))
        if queued:
            await until(lambda: it.here.leases.status().waiting == 1)
            left.set()
        await asking
        if queued:
            await it.outside.delete(f"/leases/{lease.lease_id}")
        await until(lambda: not it.fake.episodes)
        assert it.here.leases.status().leases == 0 and it.fake.episodes == {}


async def test_status_and_metrics_show_containers_and_queue() -> None:
    async with served(capacity=1) as it:
        await it.outside.post("/leases", json=ASKED)
        status = (await it.outside.get("/status")).json()
        assert (status["leases"], status["episodes"], status["capacity"]) == (1, 1, 1)
        assert status["scenarios"][0]["containers"][0]["host"] == "host-10.0.0.1"
        assert 'awm_fleet_leases{env_id="toy_library"} 1.0' in (await it.outside.get("/metrics")).text
