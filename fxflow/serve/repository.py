"""Loads, replaces and unloads the models of a server, without losing requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from fxflow.errors import ServeError
from fxflow.serve.inline import model_service
from fxflow.serve.selector import Selector, SelectorConfig
from fxflow.serve.service import MetricsSink, ModelConfig, ModelService
from fxflow.serve.versions import Versions, VersionsConfig

ModelGroup = Selector | Versions
GroupConfig = SelectorConfig | VersionsConfig

# The reason for a model without a service that has not failed.
_LOADING = "it has not finished loading"


class Repository:
    """The models of a server.

    Args:
      configs: the models' configurations.
      meter: counts batches and events.
      make: returns the service of a model; on Ray, a stand-in for remote replicas.

    Attributes:
      configs: the models' configurations by name.
      groups: groups of models by name.
      revision: grows when a name may stand for another model or group than before.
    """

    configs: dict[str, ModelConfig]
    meter: MetricsSink
    revision: int

    def __init__(
        self,
        configs: Iterable[ModelConfig],
        meter: MetricsSink | None = None,
        make: Callable[[ModelConfig, MetricsSink], ModelService] = model_service,
    ) -> None:
        self.configs = {config.name: config for config in configs}
        self.meter = meter or MetricsSink()
        self._make = make
        self.groups: dict[str, ModelGroup] = {}
        self._services: dict[str, ModelService] = {}
        self._reasons: dict[str, str] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._draining: set[asyncio.Task[None]] = set()
        self.revision = 0

    def __iter__(self) -> Iterator[ModelService]:
        return iter(self._services.values())

    @property
    def ready(self) -> bool:
        """Whether all models are ready."""
        return all(
            name in self._services and self._services[name].ready
            for name in self.configs
        )

    def __contains__(self, name: object) -> bool:
        return name in self.configs or name in self.groups

    def version(self, name: str) -> str:
        """Returns the version of a model, or the versions of a group.

        Args:
          name: name of a model or group in this repository.

        Returns:
          The version; those of a group are separated by commas.
        """
        if name in self.groups:
            return ", ".join(self.groups[name].versions)
        return self.configs[name].version

    def get(self, name: str, version: str = "") -> ModelService | ModelGroup:
        """Returns the model or group with a name.

        Args:
          name: name of a model or a group of models.
          version: version to require; empty: any.

        Returns:
          The model's service, or the group.

        Raises:
          ServeError: status 404 if the name or version is unknown, 503 if the model is
            not loaded.
        """
        group = self.groups.get(name)
        if group is None:
            return self.member(name, version)
        return group.pinned(version) if version else group

    def member(self, name: str, version: str = "") -> ModelService:
        """Returns a model's service.

        Args:
          name: name of the model.
          version: version to require; empty: any.

        Returns:
          The model's service.

        Raises:
          ServeError: status 404 if the name or version is unknown, 503 if the model is
            not loaded.
        """
        config = self.configs.get(name)
        if config is None:
            known = ", ".join(map(repr, (*self.configs, *self.groups))) or "none"
            raise ServeError(f"unknown model {name!r}; models: {known}", 404)
        service = self._services.get(name)
        if service is None:
            reason = self._reasons.get(name, _LOADING)
            raise ServeError(f"model {name!r} is not loaded: {reason}", 503, 1.0)
        if version and version != service.config.version:
            raise ServeError(
                f"model {name!r} has no version {version!r}; versions: "
                f"{service.config.version!r}",
                404,
            )
        return service

    async def load(self, name: str) -> None:
        """Loads or reloads a model; the old one serves until the new one is ready.

        Args:
          name: name of the model.

        Raises:
          ServeError: status 404 if there is no such model; 400 if it cannot be loaded,
            in which case the old one keeps serving.
        """
        if name not in self.configs:
            raise ServeError(f"unknown model {name!r}", 404)
        async with self._locks.setdefault(name, asyncio.Lock()):
            self._reasons.pop(name, None)
            try:
                service = self._make(self.configs[name], self.meter)
                await service.start()
            except ServeError as error:
                self._reasons[name] = str(error)
                raise
            old = self._services.get(name)
            self._services[name] = service
            self.revision += 1
            if old is not None:
                self._drain(old)

    async def unload(self, name: str) -> None:
        """Unloads a model after it has answered its accepted requests.

        Args:
          name: name of the model.

        Raises:
          ServeError: status 404; there is no such model.
        """
        if name not in self.configs:
            raise ServeError(f"unknown model {name!r}", 404)
        async with self._locks.setdefault(name, asyncio.Lock()):
            self._reasons[name] = "it was unloaded"
            service = self._services.pop(name, None)
            self.revision += 1
            if service is not None:
                await service.drain()

    async def configure(
        self, configs: Iterable[ModelConfig], groups: Iterable[GroupConfig] = ()
    ) -> list[str]:
        """Applies a new configuration, and reloads all its models.

        A selector whose configuration is unchanged keeps its state; rollouts restart.

        Args:
          configs: the models' configurations.
          groups: the groups' configurations.

        Returns:
          Why models could not be loaded; their old services keep serving.
        """
        new = {config.name: config for config in configs}
        for name in self.configs.keys() - new.keys():
            await self.unload(name)
        old, self.configs = self.configs, new
        self.revision += 1
        faults = []
        for name in new:
            try:
                await self.load(name)
            except ServeError as error:
                faults.append(str(error))
                if name in old and name in self._services:
                    self.configs[name] = old[name]
        return faults + await self._regroup({group.name: group for group in groups})

    async def _regroup(self, configs: dict[str, GroupConfig]) -> list[str]:
        faults, old = [], dict(self.groups)
        for name, config in configs.items():
            group: ModelGroup
            before = old.get(name)
            try:
                if isinstance(before, Selector) and before.config == config:
                    group = before
                elif isinstance(config, SelectorConfig):
                    group = Selector(config, self.member, self.meter)
                else:
                    group = Versions(config, self.member, self.meter)
                group.check()
            except ServeError as error:
                faults.append(str(error))
                continue
            self.groups[name] = group
        for name in old.keys() - configs.keys():
            del self.groups[name]
        self.revision += 1
        for name, group in old.items():
            if self.groups.get(name) is not group:
                await group.drain()
        return faults

    def index(self) -> list[dict[str, str]]:
        """Returns the protocol's index of models.

        Returns:
          Dicts with name, version, state and reason.
        """
        found = []
        for name, config in self.configs.items():
            service = self._services.get(name)
            up = service is not None and service.ready
            reason = "" if up else self._reasons.get(name, _LOADING)
            if service is not None and not up:
                reason = "none of its processes is ready"
            found.append(
                {
                    "name": name,
                    "version": config.version,
                    "state": "READY" if up else "UNAVAILABLE",
                    "reason": reason,
                }
            )
        for name, group in self.groups.items():
            found.append(
                {
                    "name": name,
                    "version": ", ".join(group.versions),
                    "state": "READY" if group.ready else "UNAVAILABLE",
                    "reason": "" if group.ready else "none of its models is ready",
                }
            )
        return found

    async def drain(self) -> None:
        """Answers the accepted requests, and stops all models."""
        await asyncio.gather(*(group.drain() for group in self.groups.values()))
        services = list(self._services.values())
        await asyncio.gather(*(service.drain() for service in services))
        await asyncio.gather(*self._draining)

    def _drain(self, service: ModelService) -> None:
        task = asyncio.get_running_loop().create_task(service.drain())
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)
