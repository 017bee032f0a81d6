"""A backend to try TruthLens with: example conversations behind the OpenAI API, and lines to paste."""

from truthlens.demo.backend import demo_app
from truthlens.demo.conversations import BY_NAME, CONVERSATIONS, Conversation, PromptLayout
from truthlens.demo.requests import MODELS, chat_request, curl_lines, tool_turn

__all__ = [
    "BY_NAME",
    "CONVERSATIONS",
    "MODELS",
    "Conversation",
    "PromptLayout",
    "chat_request",
    "curl_lines",
    "demo_app",
    "tool_turn",
]
