def written(sections):
    return "\n".join(f"## {k}\n\n{v}" for k, v in sections.items())
