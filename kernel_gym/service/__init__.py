"""The evaluation service: evaluations and episodes over HTTP, for trainers on other machines.

`kernel-gym serve` starts it; :mod:`kernel_gym.client` is its client. Submissions, tokens and bodies
are untrusted: no request names a file, a host or a module. Tasks and rewards are names in the
registries, and a service may allow fewer of them.
"""
