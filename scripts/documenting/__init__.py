"""The site: pages of the tree and of the code for MkDocs, see mkdocs.yml."""
