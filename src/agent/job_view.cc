// Makes events, metrics and the health answer from a JobView.
#include "agent/job_view.h"

#include "launch/backend_row.h"

namespace lockstep::agent {
namespace {

status::Event event_of(const JobView& view, const std::string& state) {
  const launch::LaunchConfig& config = view.node.config;
  status::Event event;
  event.state = state;
  event.run_id = config.run_id;
  event.role = config.role;
  event.hostname = view.node.name;
  event.group_rank = view.round.group_rank;
  event.group_world_size = view.round.group_world_size;
  event.rdzv_backend = config.backend->name;
  event.entry_point = config.entrypoint;
  event.agent_restarts = config.max_restarts - view.remaining_restarts;
  event.total_run_time_s = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now() - view.node.started)
                               .count();
  return event;
}

}  // namespace

status::Event node_event(const JobView& view, const std::string& state) {
  status::Event event = event_of(view, state);
  event.source = status::Event::Source::agent;
  // PyTorch's events carry a duration only for the agent's own steps. Lockstep does not measure
  // these.
  event.duration_ms = 0.0;
  return event;
}

status::Event worker_event(const JobView& view, const std::string& state, const Worker& worker,
                           const WorkerFailure* failure) {
  status::Event event = event_of(view, state);
  event.source = status::Event::Source::worker;
  status::Event::Worker about;
  about.global_rank = worker.spec.rank;
  about.local_rank = worker.spec.local_rank;
  about.role_rank = view.round.role_base_rank + worker.spec.local_rank;
  about.role_world_size = view.round.role_world_size;
  about.pid = worker.child->pid();
  about.id = std::to_string(worker.child->pid());
  if (worker.child->exit()) about.exit_code = worker.child->exit()->python_code();
  event.worker = about;
  if (failure != nullptr && failure->error) event.raw_error = failure->error->bytes;
  return event;
}

status::Metrics metrics_of(const JobView& view) {
  const launch::LaunchConfig& config = view.node.config;
  status::Metrics m;
  m.run_id = config.run_id;
  m.role = config.role;
  m.node = view.node.name;
  m.workers_running = view.workers_alive;
  m.workers_expected = config.nproc;
  m.attempts_total = view.attempts;
  m.restarts_total = config.max_restarts - view.remaining_restarts;
  m.failures_total = view.failures;
  m.restarts_remaining = view.remaining_restarts;
  m.world_size = view.round.world_size;
  m.group_rank = view.round.group_rank;
  m.goodput = view.goodput;
  m.command = config.entrypoint;
  m.version = LOCKSTEP_VERSION;
  m.start_time_s = std::chrono::duration<double>(view.node.started.time_since_epoch()).count();
  return m;
}

http::Response metrics_answer(const JobView& view, const looks::NodeRows& rows,
                              const http::Request& request) {
  const status::MetricsFormat format = status::preferred_format(request.field("accept"));
  return {.content_type = std::string(status::content_type_of(format)),
          .body = status::metrics_text(metrics_of(view), rows, format)};
}

http::Response health_of(const JobView& view) {
  return {view.healthy ? 200 : 503, "text/plain; charset=utf-8",
          view.healthy ? "ok\n" : "stopping workers\n"};
}

}  // namespace lockstep::agent
