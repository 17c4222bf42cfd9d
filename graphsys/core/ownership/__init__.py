"""Whose files are: the one module that removes any, and asks first."""

from graphsys.core.ownership.owner import CLAIM as CLAIM
from graphsys.core.ownership.owner import claim as claim
from graphsys.core.ownership.owner import claimed_names as claimed_names
from graphsys.core.ownership.owner import claimed_objects as claimed_objects
from graphsys.core.ownership.owner import draft_of as draft_of
from graphsys.core.ownership.owner import files_below as files_below
from graphsys.core.ownership.owner import held_alone as held_alone
from graphsys.core.ownership.owner import is_claim as is_claim
from graphsys.core.ownership.owner import is_claimed as is_claimed
from graphsys.core.ownership.owner import is_draft as is_draft
from graphsys.core.ownership.owner import make_folder as make_folder
from graphsys.core.ownership.owner import new_claim as new_claim
from graphsys.core.ownership.owner import prune as prune
from graphsys.core.ownership.owner import remove_cached as remove_cached
from graphsys.core.ownership.owner import remove_claimed as remove_claimed
from graphsys.core.ownership.owner import remove_draft as remove_draft
from graphsys.core.ownership.owner import remove_empty as remove_empty
from graphsys.core.ownership.owner import remove_folder as remove_folder
from graphsys.core.ownership.owner import remove_listed as remove_listed
from graphsys.core.ownership.owner import remove_made as remove_made
from graphsys.core.ownership.owner import remove_objects as remove_objects
from graphsys.core.ownership.owner import strangers as strangers
from graphsys.core.ownership.owner import temporary as temporary
from graphsys.core.ownership.owner import temporary_folder as temporary_folder
from graphsys.core.ownership.owner import unclaim as unclaim
