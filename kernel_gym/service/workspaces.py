"""Tokens for workspaces: each is good for one session, and for nothing beside it.

An agent in a workspace holds its token. With the token of the person who wrote the workspace it
could begin sessions and make evaluations beside its budget. The token of a session is computed from
the secret of the service and the id of the session, so that none is stored.
"""

from __future__ import annotations

import hmac

from kernel_gym.service.settings import Token
from kernel_gym.storage.secret import RunSecret

PREFIX = "workspace-"
DRAWS = 3
"""Draws of 48 bits of which a token consists."""


class WorkspaceToken(Token):
    """The rights of an agent in a workspace: those of its owner, on one session."""

    session_id: str

    @property
    def session(self) -> str:
        """The only session that requests may name."""
        return self.session_id


def session_secret(secret: RunSecret, session: str) -> str:
    """Returns the token of a session, which an agent sends."""
    draws = (f"{secret.draw('token of a session', session, part):012x}" for part in range(DRAWS))
    return f"{PREFIX}{session}-{''.join(draws)}"


def session_of_secret(secret: RunSecret, text: str) -> str | None:
    """Returns the session of a token; None if it is the token of none."""
    session, _, _ = text.removeprefix(PREFIX).rpartition("-")
    if not text.startswith(PREFIX) or not text.isascii() or len(text) > 256:
        return None
    return session if hmac.compare_digest(text, session_secret(secret, session)) else None


def workspace_token(owner: Token, session: str) -> WorkspaceToken:
    """Returns the rights of an agent on a session of an owner. It reads no whole records."""
    limits = owner.model_dump() | {"full_records": False}
    return WorkspaceToken.model_construct(**limits, session_id=session)
