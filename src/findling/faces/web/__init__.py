"""The page that the daemon serves; see `page.html`."""
