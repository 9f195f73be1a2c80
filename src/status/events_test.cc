#include "status/events.h"

#include <gtest/gtest.h>

namespace lockstep::status {
namespace {

Event base_event() {
  Event event;
  event.run_id = "job";
  event.group_rank = 0;
  event.hostname = "node1";
  event.rdzv_backend = "c10d";
  event.group_world_size = 1;
  event.entry_point = "train.py";
  return event;
}

TEST(Events, WorkerEventIsTorchelasticsLine) {
  Event event = base_event();
  event.state = "FAILED";
  event.source = Event::Source::worker;
  event.raw_error = "{\"message\": \"x\"}";
  event.agent_restarts = 2;
  event.total_run_time_s = 7;
  event.worker = {.global_rank = 1,
                  .id = "71",
                  .local_rank = 1,
                  .role_rank = 1,
                  .role_world_size = 2,
                  .exit_code = 3,
                  .pid = 71};
  EXPECT_EQ(
      event_json(event),
      R"({"name": "torchelastic.worker.status.FAILED", "source": "WORKER", "timestamp": 0, "metadata": )"
      R"({"run_id": "job", "global_rank": 1, "group_rank": 0, "worker_id": "71", "role": "default", )"
      R"("hostname": "node1", "state": "FAILED", "total_run_time": 7, "rdzv_backend": "c10d", )"
      R"("raw_error": "{\"message\": \"x\"}", "metadata": "{\"group_world_size\": 1, )"
      R"(\"entry_point\": \"train.py\", \"local_rank\": [1], \"role_rank\": [1], )"
      R"(\"role_world_size\": [2], \"exit_code\": [3], \"worker_pid\": [71]}", )"
      R"("agent_restarts": 2, "duration_ms": null}})");
}

TEST(Events, AgentEventHasNoWorker) {
  Event event = base_event();
  event.state = "RENDEZVOUS";
  event.duration_ms = 12.5;
  event.group_rank.reset();
  event.group_world_size.reset();
  EXPECT_EQ(
      event_json(event),
      R"({"name": "torchelastic.worker.status.RENDEZVOUS", "source": "AGENT", "timestamp": 0, "metadata": )"
      R"({"run_id": "job", "global_rank": null, "group_rank": null, "worker_id": null, "role": "default", )"
      R"("hostname": "node1", "state": "RENDEZVOUS", "total_run_time": 0, "rdzv_backend": "c10d", )"
      R"("raw_error": null, "metadata": "{\"group_world_size\": null, \"entry_point\": \"train.py\"}", )"
      R"("agent_restarts": 0, "duration_ms": 12.5}})");
}

TEST(Events, BytesFromOutsideStayOnOneAsciiLine) {
  Event event = base_event();
  event.run_id = "a\nb\xff\xc3\xa9";
  const std::string line = event_json(event);
  EXPECT_NE(line.find(R"("run_id": "a\nb\ufffd\u00e9")"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace lockstep::status
