"""Flavors and packages: what operators offer to pick from, and what picking one means for a job's request.

A job keeps the request that it was submitted with: editing or deleting what it was picked from changes only later
jobs. What can be had right now is decided in `offers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from corral.control.errors import InUse, Invalid, NotFound, Taken
from corral.control.fleet.live_fleet import Labels
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import FlavorRecord, PackageRecord
from corral.core.model import WHOLE, JobKind, Request
from corral.core.names import SETTING_NAME

#: What a node with a network for direct memory access is labelled with.
RDMA = ("rdma", "true")
#: Where a job's spec keeps what it was picked from; no node label begins like this.
FLAVOR_LABEL = "corral/flavor"
PACKAGE_LABEL = "corral/package"


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    """All flavors and packages, by name."""

    flavors: Mapping[str, FlavorRecord]
    packages: Mapping[str, PackageRecord]

    def packages_of(self, flavor: str) -> list[str]:
        return sorted(name for name, package in self.packages.items() if package.flavor == flavor)


def load_catalog(tx: Transaction) -> Catalog:
    return Catalog(
        flavors={flavor.name: flavor for flavor in tx.catalog.flavors()},
        packages={package.name: package for package in tx.catalog.packages()},
    )


# ------------------------------------------------------------------------------------------------ flavors


def create_flavor(work: Work, caller: Caller, flavor: FlavorRecord) -> FlavorRecord:
    require_operator(caller, "manage flavors and packages")
    _check_name(flavor.name)
    if flavor.name in load_catalog(work.tx).flavors:
        raise Taken(f"there is a flavor {flavor.name!r} already", field="name", name=flavor.name)
    return _save_flavor(work, caller, replace(flavor, created_at=work.now), "flavor.created")


def edit_flavor(work: Work, caller: Caller, flavor: FlavorRecord) -> FlavorRecord:
    """Replace what a flavor means. Jobs that were submitted with it keep what they asked for."""
    require_operator(caller, "manage flavors and packages")
    catalog = load_catalog(work.tx)
    known = existing_flavor(catalog, flavor.name)
    _check_gpus_for_models(flavor, [catalog.packages[name] for name in catalog.packages_of(flavor.name)])
    for name in catalog.packages_of(flavor.name):
        request_of(catalog.packages[name], flavor)
    return _save_flavor(work, caller, replace(flavor, created_at=known.created_at), "flavor.edited")


def delete_flavors(work: Work, caller: Caller, names: Sequence[str]) -> list[str]:
    """All of them or none: not while a package is made of one."""
    require_operator(caller, "manage flavors and packages")
    catalog = load_catalog(work.tx)
    wanted = _known(names, catalog.flavors, "flavor")
    used = {name: catalog.packages_of(name) for name in wanted}
    if any(used.values()):
        text = "; ".join(f"flavor {name} is used by {_packages(by)}" for name, by in used.items() if by)
        packages = sorted({package for by in used.values() for package in by})
        raise InUse(f"{text}. Nothing was deleted", field="names", packages=packages)
    work.tx.catalog.delete_flavors(wanted)
    for name in wanted:
        work.record(caller, "flavor.deleted", name)
    return wanted


def existing_flavor(catalog: Catalog, name: str) -> FlavorRecord:
    flavor = catalog.flavors.get(name)
    if flavor is None:
        raise NotFound(f"there is no flavor {name!r}", field="flavor")
    return flavor


def matching_gpus(flavor: FlavorRecord, kinds: Mapping[tuple[Labels, str], int]) -> int:
    """GPUs of this kind in the whole installation, in use or not. `kinds` counts all GPUs by the labels of their nodes
    and their model."""
    return sum(
        count
        for (labels, model), count in kinds.items()
        if (not flavor.models or model in flavor.models) and set(flavor.labels) <= set(labels)
    )


# ------------------------------------------------------------------------------------------------ packages


def create_package(work: Work, caller: Caller, package: PackageRecord) -> PackageRecord:
    require_operator(caller, "manage flavors and packages")
    _check_name(package.name)
    catalog = load_catalog(work.tx)
    if package.name in catalog.packages:
        raise Taken(f"there is a package {package.name!r} already", field="name", name=package.name)
    _check_package(catalog, package)
    return _save_package(work, caller, replace(package, created_at=work.now), "package.created")


def edit_package(work: Work, caller: Caller, package: PackageRecord) -> PackageRecord:
    """Replace what a package means. Jobs that were submitted with it keep their size."""
    require_operator(caller, "manage flavors and packages")
    catalog = load_catalog(work.tx)
    known = existing_package(catalog, package.name)
    _check_package(catalog, package)
    return _save_package(work, caller, replace(package, created_at=known.created_at), "package.edited")


def delete_packages(work: Work, caller: Caller, names: Sequence[str]) -> list[str]:
    """All of them or none. Jobs that were submitted with one are not touched."""
    require_operator(caller, "manage flavors and packages")
    wanted = _known(names, load_catalog(work.tx).packages, "package")
    work.tx.catalog.delete_packages(wanted)
    for name in wanted:
        work.record(caller, "package.deleted", name)
    return wanted


def existing_package(catalog: Catalog, name: str) -> PackageRecord:
    package = catalog.packages.get(name)
    if package is None:
        raise NotFound(f"there is no package {name!r}", field="package")
    return package


# ------------------------------------------------------------------------------------------------ picking


def picked(
    catalog: Catalog, request: Request, kind: JobKind, *, flavor: str | None = None, package: str | None = None
) -> Request:
    """The request with what the flavor or the package adds to it; refused where the two contradict each other."""
    if package is not None:
        return _with_package(catalog, request, kind, package, flavor)
    if flavor is not None:
        chosen = catalog.flavors.get(flavor)
        if chosen is None:
            raise _unknown("flavor", flavor, catalog.flavors)
        return _with_flavor(request, chosen)
    return request


def request_of(package: PackageRecord, flavor: FlavorRecord | None, nodes: int = 1) -> Request:
    """The request of a job of this package, without any other resources."""
    request = Request(
        nodes=nodes,
        gpus=package.gpus,
        gpu_milli=package.gpu_milli,
        cpu_milli=package.cpu_milli,
        memory_bytes=package.memory_bytes,
    )
    if package.rdma:
        request = _with_labels(request, (RDMA,), f"package {package.name} needs RDMA")
    return _with_flavor(request, flavor) if flavor is not None else request


def _with_package(catalog: Catalog, request: Request, kind: JobKind, name: str, flavor: str | None) -> Request:
    package = catalog.packages.get(name)
    if package is None:
        raise _unknown("package", name, catalog.packages)
    for field, given in (
        ("gpus", request.wants_gpu),
        ("cpus", request.cpu_milli),
        ("memory", request.memory_bytes),
        ("flavor", flavor),
    ):
        if given:
            raise Invalid(f"package {name} says it already: leave {field} out", field=field)
    if package.kinds and kind not in package.kinds:
        offered = ", ".join(package.kinds)
        raise Invalid(f"package {name} is for {offered} jobs, not for {kind}", field="package", known=[*package.kinds])
    chosen = catalog.flavors[package.flavor] if package.flavor is not None else None
    size = request_of(package, chosen, request.nodes)
    models = _common_models(request.models, size.models, f"package {name}")
    labels = _with_labels(request, size.labels, f"package {name} has").labels
    return replace(size, models=models, labels=labels)


def _with_flavor(request: Request, flavor: FlavorRecord) -> Request:
    if flavor.default_gpus and not request.wants_gpu:
        request = replace(request, gpus=flavor.default_gpus)
    if flavor.models and not request.wants_gpu:
        raise Invalid(
            f"flavor {flavor.name} is a kind of GPU ({' or '.join(flavor.models)}): ask for one", field="gpus"
        )
    models = _common_models(request.models, flavor.models, f"flavor {flavor.name}")
    gpu_milli = request.gpus * WHOLE + request.gpu_milli
    request = replace(
        request,
        models=models,
        cpu_milli=request.cpu_milli or flavor.cpu_milli_per_gpu * gpu_milli // WHOLE,
        memory_bytes=request.memory_bytes or flavor.memory_bytes_per_gpu * gpu_milli // WHOLE,
    )
    return _with_labels(request, flavor.labels, f"flavor {flavor.name} has")


def _common_models(asked: tuple[str, ...], offered: tuple[str, ...], what: str) -> tuple[str, ...]:
    """The models that will do for both; none named means any."""
    if not asked or not offered:
        return tuple(sorted(asked or offered))
    both = tuple(sorted(set(asked) & set(offered)))
    if not both:
        text = f"{what} is {' or '.join(offered)}, but {' or '.join(asked)} is asked for"
        raise Invalid(text, field="model", known=sorted(offered))
    return both


def _with_labels(request: Request, labels: tuple[tuple[str, str], ...], why: str) -> Request:
    both = dict(request.labels)
    for key, value in labels:
        other = both.setdefault(key, value)
        if other != value:
            raise Invalid(f"{why} label {key}={value}, against {key}={other}", field="labels")
    return replace(request, labels=tuple(sorted(both.items())))


# ------------------------------------------------------------------------------------------------ inside


def _check_package(catalog: Catalog, package: PackageRecord) -> None:
    if package.gpus and package.gpu_milli:
        raise Invalid("whole GPUs or a share of one, not both", field="gpus")
    if not (package.gpus or package.gpu_milli or package.cpu_milli or package.memory_bytes):
        raise Invalid("a package holds GPUs, CPUs or memory", field="gpus")
    flavor = None
    if package.flavor is not None:
        flavor = catalog.flavors.get(package.flavor)
        if flavor is None:
            raise _unknown("flavor", package.flavor, catalog.flavors)
    request_of(package, flavor)


def _check_gpus_for_models(flavor: FlavorRecord, packages: Iterable[PackageRecord]) -> None:
    without = [package.name for package in packages if not (package.gpus or package.gpu_milli)]
    if flavor.models and without:
        text = f"flavor {flavor.name} is used without GPUs by {_packages(without)}: it cannot name a model"
        raise InUse(text, field="models", packages=without)


def _save_flavor(work: Work, caller: Caller, flavor: FlavorRecord, action: str) -> FlavorRecord:
    flavor = replace(flavor, models=tuple(sorted(set(flavor.models))), labels=tuple(sorted(flavor.labels)))
    work.tx.catalog.save_flavor(flavor)
    detail = {
        "models": [*flavor.models],
        "labels": dict(flavor.labels),
        "cpus_per_gpu": flavor.cpu_milli_per_gpu / WHOLE,
        "memory_bytes_per_gpu": flavor.memory_bytes_per_gpu,
        "default_gpus": flavor.default_gpus,
    }
    work.record(caller, action, flavor.name, detail=detail)
    return flavor


def _save_package(work: Work, caller: Caller, package: PackageRecord, action: str) -> PackageRecord:
    work.tx.catalog.save_package(package)
    work.record(caller, action, package.name, detail={"flavor": package.flavor, "kinds": [*package.kinds]})
    return package


def _known(names: Sequence[str], known: Iterable[str], noun: str) -> list[str]:
    """The names, each once; refused naming all those that do not exist."""
    wanted = list(dict.fromkeys(names))
    missing = [name for name in wanted if name not in known]
    if missing:
        text = ", ".join(repr(name) for name in missing)
        raise NotFound(f"there is no {noun} {text}. Nothing was deleted", field="names", missing=missing)
    return wanted


def _unknown(noun: str, name: str, known: Iterable[str]) -> Invalid:
    there = sorted(known)
    listed = f"there are: {', '.join(there)}" if there else "there are none"
    return Invalid(f"there is no {noun} {name!r}; {listed}", field=noun, known=there)


def _packages(names: Sequence[str]) -> str:
    return f"package{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _check_name(name: str) -> None:
    if not SETTING_NAME.fullmatch(name):
        raise Invalid(
            f"the name {name!r} is not allowed: up to 63 letters, digits, - and _", field="name", length=len(name)
        )
