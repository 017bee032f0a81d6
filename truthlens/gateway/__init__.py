"""The gateway: Envoy's ext_proc streams in, replies out. Knows HTTP framing, not what an answer means."""

import os

# grpc's fork handlers only warn where a child process is started by exec, as Envoy is by `truthlens up`. It reads this
# when it is imported, which happens below this package alone.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
