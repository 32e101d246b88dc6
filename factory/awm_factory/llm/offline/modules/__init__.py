"""The modules of which scenarios are made, in the order in which they are built: a later one may refer to an earlier one.

A module is a file with

    FEATURES   what a variant may have or lack: booleans that add columns, tables and tools
    build(m)   declares entities and operations on a `Kit`
    seed(s)    fills them, with a `Seeding`
"""

from collections.abc import Mapping
from typing import Final, Protocol

import awm_factory.llm.offline.modules.approval as approval
import awm_factory.llm.offline.modules.auction as auction
import awm_factory.llm.offline.modules.board as board
import awm_factory.llm.offline.modules.booking as booking
import awm_factory.llm.offline.modules.campaign as campaign
import awm_factory.llm.offline.modules.catalogue as catalogue
import awm_factory.llm.offline.modules.document as document
import awm_factory.llm.offline.modules.enrolment as enrolment
import awm_factory.llm.offline.modules.frame as frame
import awm_factory.llm.offline.modules.inventory as inventory
import awm_factory.llm.offline.modules.ledger as ledger
import awm_factory.llm.offline.modules.membership as membership
import awm_factory.llm.offline.modules.messaging as messaging
import awm_factory.llm.offline.modules.order as order
import awm_factory.llm.offline.modules.record as record
import awm_factory.llm.offline.modules.reviews as reviews
import awm_factory.llm.offline.modules.shipment as shipment
import awm_factory.llm.offline.modules.ticket as ticket
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.seeding import Seeding


class Module(Protocol):
    @property
    def FEATURES(self) -> tuple[str, ...]: ...  # noqa: N802 - a constant of each module's file

    def build(self, m: Kit) -> None: ...

    def seed(self, s: Seeding) -> None: ...


MODULES: Final[Mapping[str, Module]] = {
    "frame": frame,
    "catalogue": catalogue,
    "inventory": inventory,
    "order": order,
    "booking": booking,
    "enrolment": enrolment,
    "auction": auction,
    "campaign": campaign,
    "shipment": shipment,
    "membership": membership,
    "approval": approval,
    "ledger": ledger,
    "ticket": ticket,
    "record": record,
    "document": document,
    "reviews": reviews,
    "messaging": messaging,
    "board": board,
}
