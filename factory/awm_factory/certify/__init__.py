"""Evidence that an environment is sound: one module a gate, executed in the sandbox, recorded as a certificate.

`certify` is the one way in; synthesis renders the Problems of its result into the next prompt.
"""

from awm_factory.certify.evidence import Evidence, Options
from awm_factory.certify.run import Certified, certify, is_current

__all__ = ["Certified", "Evidence", "Options", "certify", "is_current"]
