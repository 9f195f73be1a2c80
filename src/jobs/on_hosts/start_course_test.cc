// Starts a job without any host: the test makes the hosts' frames.
#include "jobs/on_hosts/start_course.h"

#include "codec/json_members.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::jobs::on_hosts {
namespace {

using Texts = std::vector<std::string>;
using Json = nlohmann::json;

class StartCourseTest : public ::testing::Test {
 protected:
  void begin(std::size_t hosts, bool needs_endpoint = true) {
    for (std::size_t i = 0; i < hosts; ++i) {
      request_.hosts.push_back({.name = "gpus-" + std::to_string(i), .target = {}});
      request_.words.push_back({"--node-rank=" + std::to_string(i)});
    }
    request_.spec.id = "aaaa1111";
    request_.needs_endpoint = needs_endpoint;
    request_.most_endpoints = most_endpoints_;
    sent_.resize(hosts);
    course_.emplace(request_,
                    StartCourse::Events{
                        .send = [this](std::size_t node,
                                       const link::Frame& frame) { sent_[node].push_back(frame); },
                        .warn = [this](const std::string& text) { warnings_.push_back(text); }});
    course_->begin();
    for (std::size_t i = 0; i < hosts; ++i)
      course_->take(i, link::Started{1, 42});
  }
  void says(std::size_t node, const std::string& line) {
    course_->take(node, link::Data{1, link::Stream::out, line + "\n"});
  }
  // The last request that went to a host.
  Json asked(std::size_t node) const {
    for (auto frame = sent_[node].rbegin(); frame != sent_[node].rend(); ++frame)
      if (const auto* data = std::get_if<link::Data>(&*frame))
        return codec::parse_json(data->bytes);
    return {};
  }
  Error error() const {
    EXPECT_TRUE(course_->is_over());
    const auto result = course_->result();
    EXPECT_FALSE(result);
    return result ? Error() : result.error();
  }

  JobRequest request_;
  std::size_t most_endpoints_ = 64;
  std::vector<std::vector<link::Frame>> sent_;
  Texts warnings_;
  std::optional<StartCourse> course_;
};

constexpr const char* kNodeZero =
    R"({"prepared":{"addresses":["10.0.0.1","fd00::1"],"port":29400,"secret":"s","let_go":["old1"]}})";
constexpr const char* kNodeOne =
    R"({"prepared":{"addresses":["10.0.0.2"],"port":29500,"secret":"t","let_go":["old2"]}})";
constexpr const char* kNodeTwo =
    R"({"prepared":{"addresses":["10.0.0.3"],"port":29600,"secret":"u"}})";
constexpr const char* kPrepared = R"({"prepared":{"let_go":["old2"]}})";

TEST_F(StartCourseTest, AllHostsPrepareThenTryEachOtherThenGo) {
  begin(3);
  const auto& start = std::get<link::Start>(sent_[1].front());
  EXPECT_EQ(start.argv, (Texts{"host-job", "start"}));
  EXPECT_EQ(asked(1)["prepare"]["node"], 1);
  EXPECT_EQ(asked(1)["prepare"]["nodes"], 3);
  says(0, kNodeZero);
  says(2, kNodeTwo);
  EXPECT_FALSE(asked(2).contains("try")) << "a host is not prepared yet";
  EXPECT_TRUE(course_->waits_for(1));
  EXPECT_FALSE(course_->waits_for(2));
  says(1, kNodeOne);
  ASSERT_EQ(asked(1)["try"].size(), 2U);
  EXPECT_EQ(asked(1)["try"][0]["port"], 29400);
  EXPECT_EQ(asked(1)["try"][0]["secret"], "s");
  EXPECT_EQ(asked(1)["try"][1]["addresses"], Texts{"10.0.0.3"});
  EXPECT_EQ(asked(0)["try"][0]["port"], 29500) << "node 0 may need the other nodes, too";
  says(0, R"({"reached":[["10.0.0.2"],["10.0.0.3"]]})");
  says(1, R"({"reached":[["fd00::1"],["10.0.0.3"]]})");
  says(2, R"({"reached":[["10.0.0.1","fd00::1"],["10.0.0.2"]]})");
  for (const std::size_t node : {0U, 1U, 2U})
    EXPECT_EQ(asked(node)["tried"], true) << "the hosts free their ports first";
  says(0, R"({"closed":true})");
  says(1, R"({"closed":true})");
  EXPECT_FALSE(asked(1).contains("go"));
  says(2, R"({"closed":true})");
  const std::string places = "[fd00::1]:29400,10.0.0.2:29500,10.0.0.3:29600";
  EXPECT_EQ(asked(2)["go"]["words"], (Texts{"--rdzv-endpoint=" + places, "--node-rank=2"}));
  EXPECT_EQ(asked(2)["go"]["after"], (Texts{"old1", "old2"}));
  for (const std::size_t node : {0U, 1U, 2U})
    says(node, R"({"started":true})");
  ASSERT_TRUE(course_->is_over());
  EXPECT_EQ(course_->result()->endpoint, places);
  EXPECT_TRUE(course_->result()->ahead.empty());
  EXPECT_TRUE(warnings_.empty());
  EXPECT_FALSE(course_->is_half_begun());
}

// As with torchrun's backends, which have one meeting place for any number of nodes.
TEST_F(StartCourseTest, TwoNodesMeetAtTheFirst) {
  begin(2);
  says(0, kNodeZero);
  says(1, kNodeOne);
  EXPECT_EQ(asked(0)["try"].size(), 0U);
  EXPECT_EQ(asked(1)["try"].size(), 1U);
  says(0, R"({"reached":[]})");
  says(1, R"({"reached":[["10.0.0.1"]]})");
  says(0, R"({"closed":true})");
  says(1, R"({"closed":true})");
  EXPECT_EQ(asked(1)["go"]["words"].front(), "--rdzv-endpoint=10.0.0.1:29400");
}

TEST_F(StartCourseTest, TwoNodesHaveTwoMeetingPlacesIfTheClientVotes) {
  request_.client_votes = true;
  begin(2);
  says(0, kNodeZero);
  says(1, kNodeOne);
  EXPECT_EQ(asked(0)["try"].size(), 1U);
  says(0, R"({"reached":[["10.0.0.2"]]})");
  says(1, R"({"reached":[["10.0.0.1"]]})");
  says(0, R"({"closed":true})");
  says(1, R"({"closed":true})");
  const std::string first = asked(1)["go"]["words"].front();
  EXPECT_TRUE(first.starts_with("--rdzv-endpoint=10.0.0.1:29400,10.0.0.2:")) << first;
}

TEST_F(StartCourseTest, OnlySoManyHostsAreTriedAsTheBackendKnowsPlaces) {
  most_endpoints_ = 1;
  begin(3);
  says(0, kNodeZero);
  says(1, kNodeOne);
  says(2, kNodeTwo);
  EXPECT_EQ(asked(0)["try"].size(), 0U);
  EXPECT_EQ(asked(2)["try"].size(), 1U);
}

TEST_F(StartCourseTest, AWayThatFailsBetweenOtherNodesIsNamedAndTheJobStarts) {
  begin(3);
  says(0, kNodeZero);
  says(1, kNodeOne);
  says(2, kNodeTwo);
  says(0, R"({"reached":[["10.0.0.2"],["10.0.0.3"]]})");
  says(1, R"({"reached":[["10.0.0.1"],["10.0.0.3"]]})");
  says(2, R"({"reached":[["10.0.0.1"],[]]})");
  EXPECT_EQ(warnings_,
            Texts{"gpus-2 cannot reach gpus-1 at any address (10.0.0.2), port 29500: if gpus-0 is "
                  "lost, gpus-1 cannot host the rendezvous in its place"});
  for (const std::size_t node : {0U, 1U, 2U})
    says(node, R"({"closed":true})");
  EXPECT_EQ(asked(0)["go"]["words"].front(), "--rdzv-endpoint=10.0.0.1:29400,10.0.0.3:29600");
}

// A lost node keeps its number, and the words of the job's start.
TEST_F(StartCourseTest, APartThatBeginsAgainKeepsItsNumber) {
  request_.nodes = {3};
  request_.spec.nodes = 4;
  begin(1, false);
  EXPECT_EQ(asked(0)["prepare"]["node"], 3);
  EXPECT_EQ(asked(0)["prepare"]["nodes"], 4);
  says(0, R"({"prepared":{}})");
  EXPECT_EQ(asked(0)["go"]["words"], Texts{"--node-rank=0"});
  says(0, R"({"queued":["old11","../x",7]})");
  ASSERT_TRUE(course_->is_over());
  EXPECT_EQ(course_->result()->ahead, Texts{"old11"}) << "names of jobs become words of a command";
}

TEST_F(StartCourseTest, AHostThatReachesNoAddressIsNamed) {
  begin(2);
  says(0, kNodeZero);
  says(1, kNodeOne);
  says(0, R"({"reached":[]})");
  says(1, R"({"reached":[[]]})");
  EXPECT_EQ(error().message,
            "gpus-1 cannot reach gpus-0 at any address (10.0.0.1, fd00::1), port 29400");
  EXPECT_NE(error().hint.find("firewall"), std::string::npos);
  EXPECT_FALSE(course_->is_half_begun());
}

// The answer decides nothing about memory: what a host did not say it has not reached.
TEST_F(StartCourseTest, AShortOrWrongListReachesNothing) {
  for (const char* answer : {R"({"reached":[]})", R"({"reached":7})", R"({"reached":[7,{}]})"}) {
    request_ = {};
    begin(2);
    says(0, kNodeZero);
    says(1, kNodeOne);
    says(0, R"({"reached":[]})");
    says(1, answer);
    EXPECT_EQ(error().code, Errc::unavailable) << answer;
  }
}

// An empty secret would make each refused connection a good answer.
TEST_F(StartCourseTest, AHostThatCannotBeTriedIsRefused) {
  const std::string longest(64, '1');
  for (const std::string& facts :
       {std::string(R"("addresses":["10.0.0.2"],"port":29500,"secret":"")"),
        std::string(R"("addresses":["10.0.0.2"],"port":29500)"),
        std::string(R"("addresses":["10.0.0.2"],"port":65536,"secret":"t")"),
        std::string(R"("addresses":["10.0.0.2"],"port":0,"secret":"t")"),
        std::string(R"("addresses":["10.0.0.2"],"secret":"t")"),
        R"("port":29500,"secret":"t","addresses":["1)" + longest + R"("])"}) {
    request_ = {};
    begin(2);
    says(0, kNodeZero);
    says(1, R"({"prepared":{)" + facts + "}}");
    EXPECT_EQ(error().message, "gpus-1: invalid answer") << facts;
  }
  request_ = {};
  begin(2);
  says(0, kNodeZero);
  says(1, R"({"prepared":{"port":65535,"secret":"t","addresses":[")" + longest + R"("]}})");
  EXPECT_FALSE(course_->is_over());
}

// A node of a container cluster may have dozens of addresses of one family.
TEST_F(StartCourseTest, OfManyAddressesBothFamiliesAreTried) {
  Json addresses = Json::array();
  for (int i = 0; i < 40; ++i)
    addresses.push_back("10.0.1." + std::to_string(i));
  for (const char* other : {"fd00::1", "127.0.0.1", "::1"})
    addresses.push_back(other);
  begin(2);
  says(0, R"({"prepared":{"port":7,"secret":"s","addresses":)" + addresses.dump() + "}}");
  says(1, kNodeOne);
  const Texts tried = asked(1)["try"][0]["addresses"];
  EXPECT_EQ(tried.size(), 16U);
  EXPECT_EQ(tried.front(), "10.0.1.0");
  EXPECT_EQ(tried.back(), "fd00::1");
  EXPECT_EQ(warnings_, Texts{"gpus-0: the other hosts try 16 of its 43 addresses"});
}

TEST_F(StartCourseTest, HostsThatCannotStartTheContainerAreNamedTogether) {
  begin(3);
  for (const std::size_t node : {0U, 2U})
    says(node, R"({"prepared":{"addresses":["10.0.0.1"],"port":29400,"secret":"s",)"
               R"("unable":"--container x needs podman\u001b"}})");
  says(1, kNodeOne);
  ASSERT_TRUE(course_->is_over());
  EXPECT_EQ(course_->result().error().message, R"(gpus-0, gpus-2: --container x needs podman\x1b)");
  EXPECT_FALSE(asked(1).contains("try"));
}

TEST_F(StartCourseTest, HostsOfDifferentProcessorsAreRefused) {
  constexpr const char* kArm =
      R"({"prepared":{"addresses":["10.0.0.3"],"port":1,"secret":"u","machine":"aarch64"}})";
  constexpr const char* kOther =
      R"({"prepared":{"addresses":["10.0.0.4"],"port":1,"secret":"v","machine":"x86_64"}})";
  begin(3);
  says(0, kArm);
  says(1, kOther);
  EXPECT_FALSE(course_->is_over()) << "the sentence names all hosts";
  says(2, kArm);
  EXPECT_EQ(error().message,
            "the hosts have different processors: aarch64 (gpus-0, gpus-2), x86_64 (gpus-1)");
  EXPECT_EQ(error().code, Errc::invalid_input);
  EXPECT_NE(error().hint.find("--mixed-hosts"), std::string::npos);
  EXPECT_FALSE(course_->is_half_begun());
  request_ = {};
  request_.mixed_hosts = true;
  begin(2);
  says(0, kArm);
  says(1, kOther);
  EXPECT_TRUE(asked(1).contains("try"));
}

// Nothing runs yet: closing the links drops the job, and nothing needs to be canceled.
TEST_F(StartCourseTest, ALossBeforeTheStartLeavesNothing) {
  begin(2);
  says(0, kNodeZero);
  course_->lost("gpus-1: the connection broke");
  EXPECT_EQ(error().message, "gpus-1: the connection broke");
  EXPECT_EQ(error().code, Errc::unavailable);
  EXPECT_FALSE(course_->is_half_begun());
  says(1, kPrepared);
  EXPECT_FALSE(asked(0).contains("try")) << "the start is over";
}

// gpus-0 may run its part: the caller must cancel the job everywhere.
TEST_F(StartCourseTest, ALossAfterTheStartLeavesAHalfBegunJob) {
  begin(2, false);
  says(0, kNodeZero);
  says(1, kPrepared);
  says(0, R"({"started":true})");
  course_->lost("gpus-1: the connection broke");
  EXPECT_EQ(error().message, "gpus-1: the connection broke");
  EXPECT_TRUE(course_->is_half_begun());
}

TEST_F(StartCourseTest, ARefusalOfAHostIsTheReason) {
  begin(1);
  says(0, R"({"refused":"the folder /x does not exist"})");
  EXPECT_EQ(error().message, "gpus-0: the folder /x does not exist");
}

TEST_F(StartCourseTest, ASupervisorThatEndsTooEarlyIsNamed) {
  begin(1);
  course_->take(0, link::Exit{1, 1, 0});
  EXPECT_EQ(error().message, "gpus-0: the job's supervisor ended before the job had begun");
}

TEST_F(StartCourseTest, TheEndOfAStartedSupervisorsLinkIsNormal) {
  begin(2, false);
  says(0, kNodeZero);
  says(1, kPrepared);
  says(0, R"({"started":true})");
  course_->take(0, link::Exit{1, 0, 0});
  EXPECT_FALSE(course_->is_over());
  says(1, R"({"started":true})");
  EXPECT_TRUE(course_->result());
}

TEST_F(StartCourseTest, ASignalEndsTheStart) {
  begin(2);
  course_->on_signal(SIGWINCH);
  EXPECT_FALSE(course_->is_over());
  course_->on_signal(SIGINT);
  EXPECT_EQ(error().code, Errc::canceled);
  EXPECT_EQ(error().sys, SIGINT);
  course_->lost("gpus-0: too late");
  EXPECT_EQ(error().code, Errc::canceled) << "the first reason stays";
}

TEST_F(StartCourseTest, RemarksOfAHostReachTheUser) {
  begin(1);
  course_->take(0, link::Data{1, link::Stream::err, "the clock is\x1b[2J wrong\n"});
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(warnings_[0].find('\x1b'), std::string::npos) << "not even a hostile one may clear the "
                                                             "terminal";
  EXPECT_TRUE(warnings_[0].starts_with("gpus-0: the clock is"));
  EXPECT_FALSE(course_->is_over());
}

TEST_F(StartCourseTest, AnAnswerOutOfTurnIsRefused) {
  for (const char* line :
       {"", "[]", "{}", "prepared", R"({"started":true})", R"({"reached":[]})"}) {
    request_ = {};
    begin(1);
    says(0, line);
    EXPECT_EQ(error().code, Errc::corrupt) << line;
    EXPECT_EQ(error().message, "gpus-0: invalid answer") << line;
  }
}

TEST_F(StartCourseTest, AHostCannotFillTheMemory) {
  begin(1);
  const std::string piece(60'000, 'x');
  for (int i = 0; i < 40 && !course_->is_over(); ++i)
    course_->take(0, link::Data{1, link::Stream::out, piece});
  EXPECT_EQ(error().message, "gpus-0: its answer is too long");
}

TEST_F(StartCourseTest, AnEnvironmentTooLargeForOneRequestIsRefused) {
  request_.spec.env = {"X=" + std::string(link::kWindow, 'x')};
  begin(1);
  EXPECT_EQ(error().code, Errc::invalid_input);
  EXPECT_EQ(error().message, "the command and the environment are too large");
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
