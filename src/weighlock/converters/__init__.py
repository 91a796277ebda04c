"""Message formats ⇄ `Request`, a module each: SDK objects, REST JSON, neutral messages."""
