"""Answer questions from the sources of the policy in the running process: ``POST /v1/ask``.

``api`` takes the request and says how often may be asked, ``choice`` what a question may use, ``service``
runs the loop of mode agentic. Only a process that is asked something imports them.
"""
