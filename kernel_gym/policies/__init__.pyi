# The public names, once: type checkers read this file, and the first use imports from it.
from .base import (
    Conversation as Conversation,
    ChatMessage as ChatMessage,
    Policy as Policy,
    PolicyError as PolicyError,
    Reply as Reply,
    Response as Response,
    Run as Run,
    Scripted as Scripted,
    Stop as Stop,
)
from .evaluate import evaluate_policy as evaluate_policy
from .names import POLICIES as POLICIES
from .options import Options as Options
from .registry import make_policy as make_policy, register_policy as register_policy
from .scripted import (
    Baseline as Baseline,
    Examples as Examples,
    Folder as Folder,
    Recorded as Recorded,
    Reference as Reference,
)
from .search import ScheduleSearch as ScheduleSearch
