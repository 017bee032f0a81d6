"""Make what retrieves evidence, from the first policy on that names sources; a process without one imports nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truthlens.core.errors import PolicyError, TruthLensError
from truthlens.policy import Policy
from truthlens.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from truthlens.detection.similarity import Similarity
    from truthlens.exchange.retrieval_step import RetrievalStep
    from truthlens.retrieval.retriever import Retriever


class PolicyRetrieval:
    """Retrieves evidence from the sources of the policy in force.

    Args:
        signals: counts the searches.
        environ: where the keys of sources come from.
        load_similarity: loads the sentence model, for sources that search by vectors.
        make_retriever: makes what searches; ``None`` for what opens the sources.
    """

    def __init__(
        self,
        signals: Metrics,
        *,
        environ: Mapping[str, str],
        load_similarity: Callable[[], Awaitable[Similarity]],
        make_retriever: Callable[..., Retriever] | None = None,
    ) -> None:
        self._make_retriever = make_retriever
        self._signals, self._environ, self._load = signals, environ, load_similarity
        self._retriever: Retriever | None = None
        self._step: RetrievalStep | None = None

    def use(self, policy: Policy) -> None:
        """Search the sources of ``policy`` from now on.

        Raises:
            PolicyError: a source cannot be used here; the sources before it stay in use.
        """
        if self._retriever is None:
            if not policy.sources:
                return
            from truthlens.exchange.retrieval_step import RetrievalStep
            from truthlens.retrieval.retriever import Retriever

            make = self._make_retriever or Retriever
            self._retriever = make(
                embed=self._embed, environ=self._environ, observe=self._signals.observe_search
            )
            self._step = RetrievalStep(self._retriever)
        try:
            self._retriever.use(policy.sources, Path(policy.file).parent)
        except (TruthLensError, ValueError, OSError, ImportError) as error:
            raise PolicyError(f"{policy.file}: {error}") from error

    def __call__(self) -> RetrievalStep | None:
        """Return what retrieves evidence; ``None`` where no policy had a source."""
        return self._step

    @property
    def retriever(self) -> Retriever | None:
        """Return what searches the sources; ``None`` where no policy had one."""
        return self._retriever

    async def aclose(self) -> None:
        """Close all sources."""
        if self._retriever is not None:
            await self._retriever.aclose()

    async def _embed(self, texts: Sequence[str]) -> Any:
        model = await self._load()
        return await asyncio.to_thread(model.embed, texts)
