//! Containers that run, wait or have ended, as the kubelet reports them.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::Reason;

/// The reasons that a kubelet reports for a container that only waits for other containers or for volumes.
const ORDINARY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    status.into_iter().flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        let ephemeral = status.ephemeral_container_statuses.iter().flatten();
        let main = status.container_statuses.iter().flatten();
        init.chain(main).chain(ephemeral)
    })
}

/// Whether the kubelet has reported on any container.
pub(super) fn is_reported(pod: &Pod) -> bool {
    statuses(pod).next().is_some()
}

/// Whether any container was started.
pub(super) fn was_started(pod: &Pod) -> bool {
    let mut states = statuses(pod).flat_map(|status| [&status.state, &status.last_state]);
    states.any(|state| {
        let state = state.as_ref();
        state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    })
}

/// The names of the running containers.
pub(super) fn running(pod: &Pod) -> Vec<String> {
    let running = statuses(pod).filter(|status| {
        let state = status.state.as_ref();
        state.is_some_and(|state| state.running.is_some())
    });
    running.map(|status| status.name.clone()).collect()
}

/// The containers that can't start or do not keep running.
pub(super) fn failing(pod: &Pod) -> Vec<Reason> {
    let failing = statuses(pod).filter_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.clone()?;
        (!ORDINARY.contains(&&*reason)).then(|| Reason::Container {
            name: status.name.clone(),
            reason,
            message: waiting.message.clone().unwrap_or_default(),
        })
    });
    failing.collect()
}

/// The names of the containers with a `preStop` hook.
pub(super) fn with_pre_stop(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.as_ref();
    let containers = spec.into_iter().flat_map(|spec| {
        let sidecars = spec.init_containers.iter().flatten();
        sidecars.chain(&spec.containers)
    });
    let with_hook = containers.filter(|container| {
        let lifecycle = container.lifecycle.as_ref();
        lifecycle.is_some_and(|lifecycle| lifecycle.pre_stop.is_some())
    });
    with_hook.map(|container| container.name.clone()).collect()
}
