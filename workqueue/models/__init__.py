"""The queue's live tables."""

from workqueue.models.item import WorkItem
from workqueue.models.node import Node
from workqueue.models.pause import Pause
from workqueue.models.setting import Setting
from workqueue.models.tenant import Membership, Tenant

__all__ = ["Membership", "Node", "Pause", "Setting", "Tenant", "WorkItem"]
