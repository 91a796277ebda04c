"""A Gemini-compatible proxy with the line in front of every request, and a JSON API beside it.

`run.py` starts it; `proxy.py` is what happens to a call.
"""
