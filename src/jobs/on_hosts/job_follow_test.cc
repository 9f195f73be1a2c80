// Follows a job whose hosts are played by the test, with the real output and the real clock.
#include "jobs/on_hosts/job_follow.h"

#include "hosts/link_testing.h"
#include "job/job_spec.h"
#include "proc/signals.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>

namespace lockstep::jobs::on_hosts {
namespace {

using Texts = std::vector<std::string>;

class JobFollowTest : public ::testing::Test {
 protected:
  // A host with its part of the job.
  struct Host {
    std::string out;
    job::PartState state = {.stage = job::Stage::ended, .ended_ms = 7};
    std::string refuses = {};                               // why no follower starts there
    std::function<void(hosts::FakeLinks::End&)> then = {};  // after the first output
    std::vector<Texts> asked = {};
  };

  JobFollowTest() {
    proc::block(proc::handled_signals());
    links_.on_frame = [this](hosts::FakeLinks::End& end, const link::Frame& frame) {
      if (const auto* start = std::get_if<link::Start>(&frame)) on_start(end, *start);
    };
  }

  void on_start(hosts::FakeLinks::End& end, const link::Start& start) {
    Host& host = hosts_[end.host];
    host.asked.push_back(start.argv);
    const std::string& verb = start.argv.at(1);
    if (!host.refuses.empty()) return end.say(link::Refused{start.channel, 127, host.refuses});
    end.say(link::Started{start.channel, 42});
    if (verb == "status") return tell_record(end, start.channel, host);
    if (verb == "cancel") {
      host.state = {.stage = job::Stage::ended, .ended_ms = 9, .code = 143, .canceled = true};
      end.say(link::Exit{start.channel, 0, 0});
      return end.say(link::Exit{1, 0, 0});  // the follower has seen the end
    }
    const auto from = static_cast<std::size_t>(std::stoll(start.argv.at(3)));
    if (from < host.out.size())
      end.say(link::Data{start.channel, link::Stream::out, host.out.substr(from)});
    if (const auto then = std::exchange(host.then, {})) return then(end);
    if (host.state.stage == job::Stage::ended || verb == "print")
      end.say(link::Exit{start.channel, 0, 0});
  }
  static void tell_record(hosts::FakeLinks::End& end, std::uint32_t channel, const Host& host) {
    job::JobRecord record;
    record.spec.id = "aaaa1111";
    record.state = host.state;
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    all.push_back(to_json(record));
    end.say(link::Data{channel, link::Stream::out, codec::print_json(all) + "\n"});
    end.say(link::Exit{channel, 0, 0});
  }

  Followed follow(const FollowOptions& options = {}) {
    FollowRequest request;
    request.job = {.id = "aaaa1111", .name = "train", .place = "gpus", .command = "train.py"};
    for (const auto& [name, host] : hosts_)
      request.job.nodes.push_back({.name = name, .target = {.host = name}});
    request.options = options;
    testing::internal::CaptureStdout();
    const auto followed =
        follow_job(request, links_.open_link(),
                   [this](io::Loop&, const hosts::CommandRequest& asked) { return answer(asked); });
    printed_ = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(followed);
    return followed ? *followed : Followed();
  }
  Result<std::vector<hosts::HostEnding>> answer(const hosts::CommandRequest& asked) const {
    EXPECT_EQ(asked.argv, (Texts{"host-job", "places", "aaaa1111", "1"}));
    return std::vector<hosts::HostEnding>(asked.hosts.size(), {.out = places_});
  }
  // From which byte each follower on the host began.
  Texts begins(const std::string& host) const {
    Texts begins;
    for (const Texts& argv : hosts_.at(host).asked)
      if (argv[1] == "follow" || argv[1] == "print") begins.push_back(argv.at(3));
    return begins;
  }
  bool was_asked(const std::string& host, const std::string& verb) const {
    const auto& asked = hosts_.at(host).asked;
    return std::any_of(asked.begin(), asked.end(),
                       [&](const Texts& argv) { return argv[1] == verb; });
  }

  std::map<std::string, Host> hosts_;
  hosts::FakeLinks links_;
  std::string places_;  // the answer of the hosts to `host-job places`
  std::string printed_;
};

TEST_F(JobFollowTest, LinesOfSeveralHostsNameTheirHost) {
  hosts_["a"].out = "one\n";
  hosts_["b"].out = "two\n";
  hosts_["b"].state.code = 3;
  const Followed followed = follow();
  EXPECT_EQ(followed.status.state, JobState::failed);
  EXPECT_EQ(followed.status.code, 3);
  EXPECT_NE(printed_.find("a: one\n"), std::string::npos) << printed_;
  EXPECT_NE(printed_.find("b: two\n"), std::string::npos) << printed_;
}

TEST_F(JobFollowTest, AHostWhoseLinkIsLostGoesOnAtItsByte) {
  hosts_["a"].out = "one\n";
  hosts_["a"].then = [this](hosts::FakeLinks::End& end) {
    hosts_["a"].out += "two\n";
    end.lose("the connection broke");
  };
  EXPECT_EQ(follow().status.state, JobState::succeeded);
  EXPECT_EQ(printed_, "one\ntwo\n");
  EXPECT_EQ(begins("a"), (Texts{"0", "4"}));
  EXPECT_EQ(links_.ends.size(), 2U);
}

// The host's memory had run out, and the kernel chose the follower.
TEST_F(JobFollowTest, AKilledFollowerIsStartedAgainWhileTheJobRuns) {
  hosts_["a"].out = "one\n";
  hosts_["a"].state = {.stage = job::Stage::running};
  hosts_["a"].then = [this](hosts::FakeLinks::End& end) {
    end.say(link::Exit{1, 0, SIGKILL});
    hosts_["a"].then = [this](hosts::FakeLinks::End& again) {
      hosts_["a"].state = {.stage = job::Stage::ended, .ended_ms = 7};
      again.say(link::Exit{1, 0, 0});
    };
  };
  EXPECT_EQ(follow().status.state, JobState::succeeded);
  EXPECT_EQ(printed_, "one\n");
  EXPECT_EQ(begins("a"), (Texts{"0", "4"}));
}

TEST_F(JobFollowTest, CtrlCCancelsTheJobOnEveryHost) {
  for (const char* name : {"a", "b"})
    hosts_[name].state = {.stage = job::Stage::running};
  hosts_["a"].then = [](hosts::FakeLinks::End&) {};
  hosts_["b"].then = [](hosts::FakeLinks::End&) { kill(getpid(), SIGINT); };
  const Followed followed = follow({.on_stop = FollowOptions::OnStop::cancel});
  EXPECT_FALSE(followed.left);
  EXPECT_EQ(followed.status.state, JobState::canceled);
  EXPECT_TRUE(was_asked("a", "cancel"));
  EXPECT_TRUE(was_asked("b", "cancel"));
}

TEST_F(JobFollowTest, CtrlCOfAViewerLeavesTheJobAlone) {
  hosts_["a"].state = {.stage = job::Stage::running};
  hosts_["a"].then = [](hosts::FakeLinks::End&) { kill(getpid(), SIGINT); };
  const Followed followed = follow();
  EXPECT_TRUE(followed.left);
  EXPECT_EQ(followed.signal, SIGINT);
  EXPECT_FALSE(was_asked("a", "cancel"));
}

TEST_F(JobFollowTest, OutputOfAnAbsentHostIsNamedAsMissing) {
  hosts_["a"].out = "one\n";
  hosts_["b"].refuses = "lockstep is not there";
  const Followed followed = follow({.to_end = false});
  EXPECT_EQ(followed.missing, Texts{"b"});
  EXPECT_NE(printed_.find("a: one\n"), std::string::npos) << printed_;
}

TEST_F(JobFollowTest, TheLastLinesBeginWhereTheHostSays) {
  hosts_["a"].out = "one\ntwo\n";
  places_ = R"({"out":4,"err":0})";
  follow({.to_end = false, .lines = 1});
  EXPECT_EQ(printed_, "two\n");
  for (const char* text : {"", "[]", R"({"out":"4"})"}) {
    places_ = text;
    hosts_["a"].asked.clear();
    follow({.to_end = false, .lines = 1});
    EXPECT_EQ(begins("a"), Texts{"0"}) << "rather too much than nothing: " << text;
  }
}

TEST_F(JobFollowTest, AWaitPrintsNothing) {
  hosts_["a"].out = "one\n";
  EXPECT_EQ(follow({.print = false}).status.code, 0);
  EXPECT_EQ(printed_, "");
  EXPECT_GT(std::stoll(begins("a").at(0)), 1'000'000'000'000);
}

TEST_F(JobFollowTest, LinesOfOneRankOrAsJson) {
  hosts_["a"].out = "[rank0]: zero\n[rank1]: one\n";
  follow({.rank = 1});
  EXPECT_EQ(printed_, "[rank1]: one\n");
  follow({.json = true});
  EXPECT_EQ(std::count(printed_.begin(), printed_.end(), '\n'), 2);
  EXPECT_NE(printed_.find(R"("rank":1)"), std::string::npos) << printed_;
}

// The host sends only as much as was printed: a stopped terminal must not fill the memory.
TEST_F(JobFollowTest, AHostWithoutRoomGoesOnOnceItsBytesArePrinted) {
  constexpr int kPieces = 40;
  const std::string piece = std::string(50'000, 'x') + "\n";
  hosts_["a"].state = {.stage = job::Stage::running};
  hosts_["a"].then = [&](hosts::FakeLinks::End& end) {
    for (int i = 0; i < kPieces; ++i)
      end.say(link::Data{1, link::Stream::out, piece});
  };
  links_.on_frame = [this, usual = links_.on_frame](hosts::FakeLinks::End& end,
                                                    const link::Frame& frame) {
    const bool room = std::holds_alternative<link::Credit>(frame);
    if (!room || hosts_["a"].state.stage == job::Stage::ended) return usual(end, frame);
    hosts_["a"].state = {.stage = job::Stage::ended, .ended_ms = 7};
    end.say(link::Data{1, link::Stream::out, "end\n"});
    end.say(link::Exit{1, 0, 0});
  };
  EXPECT_EQ(follow().status.state, JobState::succeeded);
  EXPECT_EQ(printed_.size(), kPieces * piece.size() + 4);
  EXPECT_TRUE(printed_.ends_with("end\n"));
}

// Rented machines may be gone for good. Only their provider knows.
TEST_F(JobFollowTest, HostsThatAreGoneForGoodEndTheFollowing) {
  hosts_["a"].refuses = "no route to host";
  const Followed followed = follow({.gone = [] { return true; }});
  EXPECT_TRUE(followed.gone);
  EXPECT_FALSE(followed.status.code);
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
