"""Operations on collections: create, describe, delete, compact, verify and copy them."""

from datetime import UTC, datetime
from typing import Any

from likewise.errors import InvalidParameter
from likewise.recipe.methods import MinHash, SimHash
from likewise.recipe.recipe import Recipe
from likewise.service.api.texts import recipe_given
from likewise.service.collections.service import Service
from likewise.service.problems import Problem

Json = dict[str, Any]
# Maximum number of members a document is compared with per band: three levels of 64.
_MOST_A_BAND = 192


class Administration:
    """The service's operations on collections. Each method performs one operation and returns JSON values."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def list_all(self) -> Json:
        """Return all collections."""
        shown, broken = await self._service.in_thread(self._service.describe)
        return {"collections": shown, "broken": broken}

    async def create(self, collection: str, body: Any) -> Json:
        """Create a collection, or raise Problem."""
        self._service.check_name(collection)
        recipe = recipe_given(body.recipe, keep="first")
        self._check(recipe)
        made = await self._service.in_thread(
            self._service.create, collection, recipe, store=body.store, ttl_s=body.ttl_s, ttl_from=body.ttl_from
        )
        shown: Json = await self._service.in_thread(made.describe)
        return shown

    async def get(self, collection: str) -> Json:
        """Return the description of a collection."""
        shown: Json = await self._service.in_thread(self._service.collection(collection).describe)
        return shown

    async def delete(self, collection: str) -> Json:
        """Delete a collection."""
        await self._service.in_thread(self._service.delete, collection)
        return {"deleted": collection}

    async def compact(self, collection: str) -> Json:
        """Merge all segments of a collection into one."""
        found = self._service.collection(collection)
        self._check_may_write()
        await self._service.in_thread(found.index.compact)
        return {"status": "ok"}

    async def verify(self, collection: str, body: Any) -> Json:
        """Return the problems found in a collection."""
        found = self._service.collection(collection)
        return {"problems": await self._service.in_thread(found.index.verify, full=body.full)}

    async def list_snapshots(self, collection: str) -> Json:
        """Return the names of the snapshots of a collection."""
        return {"snapshots": await self._service.in_thread(self._service.snapshots, collection)}

    async def create_snapshot(self, collection: str) -> Json:
        """Create a snapshot of a collection."""
        self._service.collection(collection)
        # With microseconds, so that names are in order.
        stamp = datetime.now(UTC).strftime("%Y%m%dt%H%M%S%f")
        return {"snapshot": await self._service.in_thread(self._service.make_snapshot, collection, stamp)}

    async def delete_snapshot(self, collection: str, snapshot: str) -> Json:
        """Delete a snapshot of a collection."""
        self._service.collection(collection)
        await self._service.in_thread(self._service.delete_snapshot, collection, snapshot)
        return {"deleted": snapshot}

    def _check_may_write(self) -> None:
        if self._service.settings.is_read_only:
            raise Problem("read-only", "the service is read-only")

    def _check(self, recipe: Recipe) -> None:
        """Raise InvalidParameter for a recipe whose queries may cost too much."""
        settings = self._service.settings
        method = recipe.sketch
        if isinstance(method, SimHash) and (method.within or 0) > settings.max_within:
            raise InvalidParameter(
                "recipe.within", f"the recipe has {method.within}; the maximum is {settings.max_within}: set within"
            )
        if isinstance(method, MinHash) and (method.bands or 0) * _MOST_A_BAND > settings.max_candidates:
            raise InvalidParameter(
                "recipe.bands",
                f"{method.bands} bands may give {(method.bands or 0) * _MOST_A_BAND} candidates; the maximum is "
                f"{settings.max_candidates}",
            )
