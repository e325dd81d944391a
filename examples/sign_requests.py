"""Sign the requests for robots.txt with HTTP message signatures (RFC 9421).

pip install '.[examples]'
python examples/sign_requests.py

Two sites on this machine accept only signed requests. The robots.txt of the first one
redirects to the second one, so there are two requests to sign.
"""

from __future__ import annotations

import hashlib
import re
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from example_site import Handler, Site, running

from robotsgate import RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from example_site import Pages

USER_AGENT = "ExampleBot/1.0 (+https://bot.example)"

# --- The signature


class Signer:
    """Signs requests as a crawler whose public key is published at `agent`."""

    def __init__(self, key: Ed25519PrivateKey, agent: str) -> None:
        """Sign with `key`; `agent` is an https URL without a path."""
        self._key, self._agent = key, f'"{agent}"'
        x = urlsafe_b64encode(key.public_key().public_bytes_raw()).decode().rstrip("=")
        jwk = f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'
        thumbprint = hashlib.sha256(jwk.encode()).digest()  # RFC 7638
        self._key_id = urlsafe_b64encode(thumbprint).decode().rstrip("=")

    def __call__(
        self, _method: str, url: str, _headers: Mapping[str, str]
    ) -> dict[str, str]:
        """The headers to add to a request for `url`."""
        now = int(time.time())
        parameters = (
            f'("@authority" "signature-agent";key="sig");created={now}'
            f';expires={now + 60};keyid="{self._key_id}";tag="web-bot-auth"'
        )
        base = signature_base(urlsplit(url).netloc, self._agent, parameters)
        return {
            "Signature-Agent": f"sig={self._agent}",
            "Signature-Input": f"sig={parameters}",
            "Signature": f"sig=:{b64encode(self._key.sign(base)).decode()}:",
        }


def signature_base(authority: str, agent: str, parameters: str) -> bytes:
    """The bytes to sign (RFC 9421 §2.5)."""
    lines = (
        f'"@authority": {authority}',
        f'"signature-agent";key="sig": {agent}',
        f'"@signature-params": {parameters}',
    )
    return "\n".join(lines).encode()


# --- The sites

KEY = Ed25519PrivateKey.generate()


class VerifyingHandler(Handler):
    """Responds only to requests that are signed with `KEY`."""

    def do_GET(self) -> None:  # noqa: N802 (http.server's name)
        """Send the page, or a 403 if the request has no valid signature."""
        if self.is_signed():
            super().do_GET()
        else:
            print(f"    the site answers GET {self.path} with 403", flush=True)
            self.send_error(403)

    def is_signed(self) -> bool:
        """Whether the signature is ours, for this host, and has not expired."""
        names = ("Signature-Agent", "Signature-Input", "Signature")
        agent, parameters, signature = (
            str(self.headers[name]).removeprefix("sig=") for name in names
        )
        expires = re.search(r";expires=(\d+)", parameters)
        if expires is None or int(expires[1]) < time.time():
            return False
        base = signature_base(self.headers["Host"], agent, parameters)
        try:
            KEY.public_key().verify(b64decode(signature.strip(":")), base)
        except InvalidSignature:
            return False
        return True


def verifying(pages: Pages) -> AbstractContextManager[str]:
    """Run such a site until the end of the block; yields its origin."""
    site = Site(pages, "127.0.0.1")
    site.RequestHandlerClass = VerifyingHandler
    return running(site)


# --- The crawler


async def check(url: str, sign: Signer | None) -> None:
    """Print whether `url` may be fetched, and why."""
    async with RobotsChecker(user_agent=USER_AGENT, sign=sign) as checker:
        verdict = await checker.check("ExampleBot", url)
    answer = "allowed" if verdict else "disallowed"
    print(f"{answer}: {verdict.reason.value}, status {verdict.status}")


async def main(url: str) -> None:
    """Check `url` without and with a signature."""
    await check(url, None)
    await check(url, Signer(KEY, "https://bot.example"))


if __name__ == "__main__":
    with (
        verifying({"/rules": "User-agent: *\nDisallow: /basket\n"}) as other,
        verifying({"/robots.txt": (302, f"{other}/rules")}) as shop,
    ):
        anyio.run(main, f"{shop}/basket")
