#include "jobs/on_hosts/begin.h"

#include "codec/json.h"
#include "job/job_spec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace lockstep::jobs::on_hosts {
namespace {

hosts::HostEnding answer_of(job::Stage stage) {
  job::JobRecord record;
  record.spec.id = "aaaa1111";
  record.spec.name = "train.py";
  record.spec.run = {"train.py"};
  record.state.stage = stage;
  hosts::HostEnding ending;
  ending.out = codec::print_json(nlohmann::ordered_json::array({job::to_json(record)}));
  return ending;
}

hosts::HostEnding answer_text(std::string text, int code = 0) {
  hosts::HostEnding ending;
  ending.out = std::move(text);
  ending.code = code;
  return ending;
}

TEST(BegunParts, AllHostsRunOrHaveRunTheJob) {
  const auto parts =
      begun_parts("aaaa1111", {answer_of(job::Stage::running), answer_of(job::Stage::queued),
                               answer_of(job::Stage::ended)});
  ASSERT_TRUE(parts);
  EXPECT_TRUE(parts->all_begun);
  EXPECT_EQ(parts->known, (std::vector<bool>{true, true, true}));
}

TEST(BegunParts, OneHostWasNotToldToGo) {
  const auto prepared =
      begun_parts("aaaa1111", {answer_of(job::Stage::running), answer_of(job::Stage::prepared)});
  ASSERT_TRUE(prepared);
  EXPECT_FALSE(prepared->all_begun);
  EXPECT_EQ(prepared->known, (std::vector<bool>{true, true}));
  const auto unknown = begun_parts("aaaa1111", {answer_of(job::Stage::running), answer_text("[]")});
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(unknown->all_begun);
  EXPECT_EQ(unknown->known, (std::vector<bool>{true, false}));
}

TEST(BegunParts, AHostThatDoesNotAnswerMayRunTheJob) {
  for (const auto& bad : {answer_text("[]", 1), answer_text(""), answer_text("{}")}) {
    const auto parts = begun_parts("aaaa1111", {answer_of(job::Stage::running), bad});
    ASSERT_FALSE(parts) << bad.out;
    EXPECT_EQ(parts.error().code, Errc::unavailable);
  }
  // A record that makes no sense is no beginning, and the host is told to cancel what it has.
  const auto hostile = begun_parts("aaaa1111", {answer_text("[7]")});
  ASSERT_TRUE(hostile);
  EXPECT_FALSE(hostile->all_begun);
  EXPECT_EQ(hostile->known, std::vector<bool>{true});
}

TEST(SettleBeginning, AJobThatRanIsNotAskedAbout) {
  KnownJob job;
  job.status.state = JobState::running;
  const auto begun = settle_beginning(job);
  ASSERT_TRUE(begun);
  EXPECT_TRUE(*begun);
}

TEST(Begin, AnErrorBeforeTheHostsAreToldStartsNothing) {
  std::string folder = std::filesystem::temp_directory_path() / "begin-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  auto book = JobBook::open(folder);
  ASSERT_TRUE(book);
  KnownJob job;
  job.id = "aaaa1111";
  job.status.state = JobState::starting;
  bool told = false;
  const auto started =
      begin(*book, {}, job,
            {.recorded = [](const std::string&) { return fail(Errc::unavailable, "the journal"); },
             .started = [&](const std::vector<std::string>&) { told = true; }});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "the journal");
  EXPECT_FALSE(told);
  EXPECT_EQ(book->find("aaaa1111").error().code, Errc::not_found);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
