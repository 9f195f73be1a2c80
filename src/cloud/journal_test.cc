#include "cloud/journal.h"

#include "base/error_testing.h"
#include "db/database.h"
#include "io/fd.h"
#include "io/replace_file.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

namespace lockstep::cloud {
namespace {

class JournalFile : public ::testing::Test {
 protected:
  JournalFile() {
    std::string name = ::testing::TempDir() + "journalXXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~JournalFile() override { std::filesystem::remove_all(folder_); }

  Result<Journal> open() const { return Journal::open(folder_ + "/state"); }
  std::string file() const { return folder_ + "/state/rentals.db"; }

  std::string folder_;
};

Rental rental_of(const std::string& id, const std::string& cluster, std::int64_t created_ms) {
  return {.id = id, .cluster = cluster, .owner = "me", .created_ms = created_ms};
}

std::vector<std::string> ids_of(const Result<std::vector<Rental>>& rentals) {
  std::vector<std::string> ids;
  for (const Rental& rental : *rentals)
    ids.push_back(rental.id);
  return ids;
}

TEST_F(JournalFile, ItIsThisUsersAlone) {
  ASSERT_TRUE(open());
  struct stat info {};
  ASSERT_EQ(stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(stat((folder_ + "/state").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(JournalFile, ProcessesThatStartAtOnceHaveOneName) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  constexpr int kProcesses = 8;
  for (int i = 0; i < kProcesses; ++i)
    if (fork() == 0) {
      auto journal = open();
      const auto owner = journal ? journal->owner() : Result<std::string>("none............");
      const bool told = owner && write(pipe_ends[1], owner->data(), owner->size()) == 16;
      _exit(told ? 0 : 1);
    }
  close(pipe_ends[1]);
  std::set<std::string> names;
  std::string name(16, ' ');
  int told = 0;
  while (read(pipe_ends[0], name.data(), name.size()) == 16) {
    names.insert(name);
    ++told;
  }
  close(pipe_ends[0]);
  for (int i = 0; i < kProcesses; ++i)
    wait(nullptr);
  EXPECT_EQ(told, kProcesses);
  ASSERT_EQ(names.size(), 1U);
  EXPECT_EQ(*open()->owner(), *names.begin());
}

TEST_F(JournalFile, ItsNameOutlivesIt) {
  const std::string name = *open()->owner();
  for (const char* ending : {"", "-wal", "-shm"})
    unlink((file() + ending).c_str());
  EXPECT_EQ(*open()->owner(), name);
  // A file without a valid id is ignored. A journal with an id keeps that id.
  for (const char* text : {"", "short\n", "0123456789ABCDEF\n", "0123456789abcdef", "a b\n\n"}) {
    for (const char* ending : {"", "-wal", "-shm"})
      unlink((file() + ending).c_str());
    ASSERT_TRUE(io::replace_file(folder_ + "/state/installation", text));
    const std::string other = *open()->owner();
    EXPECT_EQ(other.size(), 16U);
    EXPECT_NE(other, name);
    EXPECT_EQ(other.find_first_not_of("0123456789abcdef"), std::string::npos) << other;
    EXPECT_EQ(*io::read_file(folder_ + "/state/installation"), other + "\n");
    ASSERT_TRUE(io::replace_file(folder_ + "/state/installation", name + "\n"));
    EXPECT_EQ(*open()->owner(), other);
  }
}

// Runs another process before each write.
class Interrupted : public Records {
 public:
  Interrupted(std::unique_ptr<Records> records, std::function<void()> meanwhile)
      : records_(std::move(records)), meanwhile_(std::move(meanwhile)) {}
  Status put(const Record& record) override { return meanwhile_(), records_->put(record); }
  Status add(const Record& record) override { return meanwhile_(), records_->add(record); }
  Status change(const Record& record) override { return records_->change(record); }
  Status drop(const std::string& kind, const std::string& id) override {
    return records_->drop(kind, id);
  }
  Result<std::vector<Record>> open_ones(const std::string& kind) override {
    return records_->open_ones(kind);
  }
  Result<std::vector<Record>> since(const std::string& kind, std::int64_t ms) override {
    return records_->since(kind, ms);
  }
  Result<std::optional<Record>> newest(const std::string& kind, const std::string& part) override {
    return records_->newest(kind, part);
  }

 private:
  std::unique_ptr<Records> records_;
  std::function<void()> meanwhile_;
};

TEST_F(JournalFile, WhoIsInterruptedTakesTheOthersName) {
  for (int i = 0; i < 16; ++i) {
    const std::string path = folder_ + "/" + std::to_string(i) + ".db";
    Journal other(std::move(*open_records(path)));
    std::string name_of_other;
    Journal journal(std::make_unique<Interrupted>(std::move(*open_records(path)),
                                                  [&] { name_of_other = *other.owner(); }));
    const std::string name = *journal.owner();
    EXPECT_EQ(name, name_of_other);
    EXPECT_EQ(*other.owner(), name);
  }
}

TEST_F(JournalFile, AJobThatWasDroppedIsNotNotedAgain) {
  auto journal = open();
  RentedJob job{.rental = "r", .cluster = "lab", .words = {}, .folder = "/"};
  ASSERT_TRUE(journal->note_job(job));
  EXPECT_FALSE(*journal->has_job("r"));
  ASSERT_TRUE(journal->keep_job(job));
  job.stage = RentedJob::Stage::ending;
  job.code = 7;
  ASSERT_TRUE(journal->note_job(job));
  const auto jobs = journal->jobs();
  ASSERT_EQ(jobs->size(), 1U);
  EXPECT_EQ(jobs->front().stage, RentedJob::Stage::ending);
  EXPECT_EQ(jobs->front().code, 7);
  ASSERT_TRUE(journal->drop_job("r"));
  ASSERT_TRUE(journal->note_job(job));
  EXPECT_FALSE(*journal->has_job("r"));
}

TEST_F(JournalFile, OpenOnesAndThoseClosedSince) {
  auto journal = open();
  ASSERT_TRUE(journal);
  Rental first = rental_of("first", "a", 100);
  Rental second = rental_of("second", "b", 200);
  ASSERT_TRUE(journal->keep(first));
  ASSERT_TRUE(journal->keep(second));
  first.closed_ms = 300;
  ASSERT_TRUE(journal->keep(first));
  EXPECT_EQ(ids_of(journal->open_rentals()), std::vector<std::string>{"second"});
  EXPECT_EQ(journal->of_cluster("b")->id, "second");
  EXPECT_EQ(code_of(journal->of_cluster("a")), Errc::not_found);
  EXPECT_EQ(ids_of(journal->since(301)), std::vector<std::string>{"second"});
  EXPECT_EQ(ids_of(journal->since(250)), (std::vector<std::string>{"second", "first"}));
}

TEST_F(JournalFile, WhatWasEverRented) {
  auto journal = open();
  ASSERT_TRUE(journal);
  EXPECT_FALSE(*journal->any_since(0));
  Rental old = rental_of("old", "a", 100);
  old.attempts.emplace_back().offer.provider = "aws";
  old.closed_ms = 300;
  ASSERT_TRUE(journal->keep(old));
  Rental later = rental_of("later", "b", 200);
  later.closed_ms = 400;
  ASSERT_TRUE(journal->keep(later));
  EXPECT_TRUE(*journal->any_since(400));
  EXPECT_FALSE(*journal->any_since(401));
  EXPECT_TRUE(*journal->ever_used("aws"));
  EXPECT_FALSE(*journal->ever_used("gcp"));
  ASSERT_TRUE(journal->keep(rental_of("open", "d", 10)));
  EXPECT_TRUE(*journal->any_since(401)) << "one is open";
}

// The process with the rental writes its own copy. The mark for termination must survive that
// write.
TEST_F(JournalFile, AnEndThatIsAskedForIsHeededWhateverItsOwnerWrites) {
  auto journal = open();
  ASSERT_TRUE(journal);
  Rental first = rental_of("first", "a", 100);
  ASSERT_TRUE(journal->keep(first));
  ASSERT_TRUE(journal->keep(rental_of("second", "b", 200)));
  ASSERT_TRUE(open()->ask_to_end("first"));
  ASSERT_TRUE(journal->keep(first));
  EXPECT_TRUE(*journal->end_is_asked("first"));
  EXPECT_FALSE(*journal->end_is_asked("second"));
  EXPECT_FALSE(journal->of_cluster("a")->wanted);
  EXPECT_TRUE(journal->of_cluster("b")->wanted);
  first.closed_ms = 300;
  ASSERT_TRUE(journal->keep(first));
  EXPECT_FALSE(*journal->end_is_asked("first"));
}

TEST_F(JournalFile, BlocksEndAndOneKindDoesNotHideAnother) {
  auto journal = open();
  ASSERT_TRUE(journal);
  const Block quota{.kind = Block::Kind::quota, .provider = "p", .region = "r", .until_ms = 1'000};
  Block unhealthy = quota;
  unhealthy.kind = Block::Kind::unhealthy;
  unhealthy.until_ms = 500;
  unhealthy.why = "two\tparts\nand lines";
  ASSERT_TRUE(journal->learn(quota));
  ASSERT_TRUE(journal->learn(unhealthy));
  EXPECT_EQ(journal->blocks(499)->size(), 2U);
  ASSERT_EQ(journal->blocks(500)->size(), 1U);
  EXPECT_EQ(journal->blocks(500)->front().kind, Block::Kind::quota);
  EXPECT_TRUE(journal->blocks(1'000)->empty());
  EXPECT_TRUE(journal->blocks(0)->empty());  // dropped
}

TEST_F(JournalFile, JobsStayUntilTheyAreDropped) {
  auto journal = open();
  ASSERT_TRUE(journal);
  RentedJob job{.rental = "first", .cluster = "a", .words = {"train.py"}, .folder = "/tmp"};
  ASSERT_TRUE(journal->keep_job(job));
  job.stage = RentedJob::Stage::ended;
  ASSERT_TRUE(journal->keep_job(job));
  ASSERT_EQ(open()->jobs()->size(), 1U);
  EXPECT_EQ(open()->jobs()->front().stage, RentedJob::Stage::ended);
  ASSERT_TRUE(journal->drop_job("first"));
  EXPECT_TRUE(open()->jobs()->empty());
  auto records = open_records(file());
  ASSERT_TRUE((*records)->put({.kind = "job", .id = "other", .json = "{}"}));
  EXPECT_TRUE(journal->jobs()->empty()) << "what can't be read is nobody's";
}

TEST_F(JournalFile, AFullDiskIsAnErrorAndLosesNothing) {
  auto journal = open();
  ASSERT_TRUE(journal);
  Rental rental = rental_of("first", "a", 100);
  ASSERT_TRUE(journal->keep(rental));
  ASSERT_TRUE(journal->learn({.provider = "p", .region = "r", .until_ms = 10, .why = {}}));
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  rental.user_data = std::string(20'000, 'x');
  const Status kept = journal->keep(rental);
  const auto blocks = journal->blocks(100);  // the old block cannot be dropped, which is harmless
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, before);
  EXPECT_FALSE(kept);
  EXPECT_TRUE(blocks);
  EXPECT_EQ(open()->of_cluster("a")->user_data, "");
  EXPECT_TRUE(journal->keep(rental));
  EXPECT_EQ(open()->of_cluster("a")->user_data.size(), 20'000U);
}

TEST_F(JournalFile, ADamagedFileIsLeftAsItIs) {
  ASSERT_TRUE(open());
  std::filesystem::remove(file() + "-wal");
  std::ofstream(file()) << std::string(8'192, 'x');
  const auto journal = open();
  ASSERT_FALSE(journal);
  EXPECT_EQ(code_of(journal), Errc::corrupt);
  EXPECT_NE(journal.error().message.find("rentals.db"), std::string::npos);
  std::string text;
  std::getline(std::ifstream(file()), text);
  EXPECT_EQ(text, std::string(8'192, 'x'));
}

TEST_F(JournalFile, AFileOfANewerVersionIsRefused) {
  constexpr std::array<std::string_view, 9> kNewer = {
      "CREATE TABLE a (x)", "CREATE TABLE b (x)", "CREATE TABLE c (x)",
      "CREATE TABLE d (x)", "CREATE TABLE e (x)", "CREATE TABLE f (x)",
      "CREATE TABLE g (x)", "CREATE TABLE h (x)", "CREATE TABLE i (x)"};
  std::filesystem::create_directory(folder_ + "/state");
  ASSERT_TRUE(db::Database::open(file(), kNewer));
  const auto journal = open();
  ASSERT_FALSE(journal);
  EXPECT_EQ(code_of(journal), Errc::unavailable) << journal.error().message;
}

TEST_F(JournalFile, ARentalThatCannotBeReadIsNamed) {
  auto records = open_records(folder_ + "/odd.db");
  ASSERT_TRUE(records);
  ASSERT_TRUE((*records)->put({.kind = "rental", .id = "odd one", .json = "{"}));
  Journal journal(std::move(*records));
  const auto found = journal.open_rentals();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "rental odd one: a rental in the journal cannot be read");
}

}  // namespace
}  // namespace lockstep::cloud
