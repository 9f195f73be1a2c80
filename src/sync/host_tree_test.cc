#include "sync/host_tree.h"

#include "base/error_testing.h"
#include "sync/scan.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep::sync {
namespace {

namespace fs = std::filesystem;

// A client's tree and a host's tree, side by side. Needed files are copied as rsync would copy
// them.
class HostTreeTest : public ::testing::Test {
 protected:
  HostTreeTest() {
    const fs::path top = fs::path(::testing::TempDir()) /
                         (std::string("host_tree_") +
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top);
    fs::create_directories(top / "client");
    fs::create_directories(top / "home");
    top_ = fs::canonical(top);
    client_ = top_ / "client";
    there_ = top_ / "home/tree";
  }

  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  Result<Answer> ask(Offer offer = {}) {
    if (offer.destination.empty()) offer.destination = "tree";
    if (offer.owner.root.empty()) offer.owner = {"laptop", "/x"};
    offer.told = true;
    offer.manifest = scan(client_.string(), By::own_rules).value().manifest;
    manifest_ = offer.manifest;
    return answer_offer(offer, {(top_ / "home").string(), (top_ / "state").string()});
  }
  void bring(const Answer& answer, std::size_t most = 1000) const {
    for (const Entry& entry : pick(manifest_, answer.needed)) {
      if (most-- == 0) return;
      fs::create_directories((there_ / entry.path).parent_path());
      fs::remove(there_ / entry.path);
      fs::copy(client_ / entry.path, there_ / entry.path, fs::copy_options::copy_symlinks);
      if (entry.kind == Kind::file)
        fs::last_write_time(there_ / entry.path, fs::last_write_time(client_ / entry.path));
    }
  }
  std::vector<std::string> needed(const Answer& answer) const {
    std::vector<std::string> paths;
    for (const Entry& entry : pick(manifest_, answer.needed))
      paths.push_back(entry.path);
    return paths;
  }

  Result<Answer> ask_untold() {
    Offer offer{.destination = "tree", .owner = {"laptop", "/x"}};
    offer.manifest = scan(client_.string(), By::own_rules).value().manifest;
    return answer_offer(offer, {(top_ / "home").string(), (top_ / "state").string()});
  }
  // Does what `lockstep sync --back` would do.
  void bring_back(const fs::path& path) const {
    fs::create_directories((client_ / path).parent_path());
    fs::copy(there_ / path, client_ / path, fs::copy_options::overwrite_existing);
    fs::last_write_time(client_ / path, fs::last_write_time(there_ / path));
  }

  fs::path top_;
  fs::path client_;
  fs::path there_;
  Manifest manifest_;
};

using Paths = std::vector<std::string>;

TEST_F(HostTreeTest, NeedsWhatIsNotThere) {
  write(client_ / "a", "1");
  write(client_ / "b/c", "1");
  auto answer = ask().value();
  EXPECT_EQ(needed(answer), (Paths{"a", "b/c"}));
  EXPECT_EQ(answer.place, there_.string());
  bring(answer);
  EXPECT_TRUE(ask()->needed.empty());
  write(client_ / "a", "22");
  answer = ask().value();
  EXPECT_EQ(needed(answer), Paths{"a"});
  EXPECT_EQ(answer.edited, 0U);
  fs::permissions(client_ / "b/c", fs::perms::owner_exec, fs::perm_options::add);
  EXPECT_EQ(needed(*ask()), (Paths{"a", "b/c"}));
}

TEST_F(HostTreeTest, TakesWhatItAskedForAndNothingElse) {
  write(client_ / "a", "12345");
  write(client_ / "b/c", "1");
  const auto answer = ask().value();
  Delivery delivery{.destination = "tree", .owner = {"laptop", "/x"}};
  DeliveryTaker taker({(top_ / "home").string(), (top_ / "state").string()});
  delivery.pieces = {{manifest_[0], 0, "12"}};
  EXPECT_TRUE(taker.take(delivery));
  EXPECT_FALSE(fs::exists(there_ / "a"));  // not complete yet
  delivery.pieces = {{manifest_[0], 2, "345"}, {manifest_[1], 0, "1"}};
  EXPECT_TRUE(taker.take(delivery));
  EXPECT_TRUE(ask()->needed.empty());

  Entry other = manifest_[0];
  other.size = 1;
  delivery.pieces = {{other, 0, "x"}};
  EXPECT_EQ(code_of(taker.take(delivery)), Errc::corrupt);
  other.path = "d";
  delivery.pieces = {{other, 0, "x"}};
  EXPECT_EQ(code_of(taker.take(delivery)), Errc::corrupt);
  EXPECT_FALSE(fs::exists(there_ / "d"));
  delivery.pieces.clear();
  delivery.destination = "elsewhere";
  EXPECT_EQ(code_of(taker.take(delivery)), Errc::corrupt);
  DeliveryTaker of_another({(top_ / "home").string(), (top_ / "state").string()});
  EXPECT_EQ(code_of(of_another.take({.destination = "tree", .owner = {"desktop", "/x"}})),
            Errc::already_exists);
}

TEST_F(HostTreeTest, RemovesWhatItWasSentAndNothingElse) {
  for (const char* name : {"a", "b/c", "d"})
    write(client_ / name, "1");
  bring(ask().value());
  write(there_ / "b/theirs", "x");
  fs::remove_all(client_ / "b");
  fs::remove(client_ / "d");
  EXPECT_EQ(ask({.dry_run = true})->removed, 2U);
  EXPECT_TRUE(fs::exists(there_ / "d"));
  EXPECT_EQ(ask()->removed, 2U);
  EXPECT_FALSE(fs::exists(there_ / "b/c"));
  EXPECT_FALSE(fs::exists(there_ / "d"));
  EXPECT_TRUE(fs::exists(there_ / "b/theirs"));
  EXPECT_EQ(ask()->removed, 0U);
}

TEST_F(HostTreeTest, KeepsWhatWasChangedThereAndIsGoneHere) {
  write(client_ / "a", "1");
  bring(ask().value());
  write(there_ / "a", "changed");
  fs::remove(client_ / "a");
  auto answer = ask().value();
  EXPECT_EQ(answer.kept, Paths{"a"});
  EXPECT_EQ(answer.removed, 0U);
  EXPECT_TRUE(fs::exists(there_ / "a"));
  EXPECT_TRUE(ask()->kept.empty());
}

TEST_F(HostTreeTest, ARemovalWaitsUntilItWasTold) {
  for (const char* name : {"a", "b", "c"})
    write(client_ / name, "1");
  bring(ask().value());
  fs::remove(client_ / "b");
  write(client_ / "a", "22");
  auto answer = ask_untold().value();
  EXPECT_TRUE(answer.waits);
  EXPECT_EQ(answer.removals, Paths{"b"});
  EXPECT_TRUE(fs::exists(there_ / "b"));
  answer = ask().value();
  EXPECT_FALSE(answer.waits);
  EXPECT_EQ(answer.removals, Paths{"b"});
  EXPECT_EQ(needed(answer), Paths{"a"});
  EXPECT_FALSE(fs::exists(there_ / "b"));
  bring(answer);
  EXPECT_FALSE(ask_untold()->waits);
}

// A job's output that was brought back is equal on both sides, but was never sent.
TEST_F(HostTreeTest, WhatAJobMadeThereIsNeverRemoved) {
  write(client_ / "train.py", "1");
  bring(ask().value());
  write(there_ / "outputs/ckpt", "step 1");
  bring_back("outputs/ckpt");
  EXPECT_TRUE(ask()->needed.empty());
  EXPECT_TRUE(ask()->needed.empty());
  fs::remove_all(client_ / "outputs");
  const auto answer = ask().value();
  EXPECT_EQ(answer.removed, 0U);
  EXPECT_EQ(answer.kept, Paths{"outputs/ckpt"});
  EXPECT_TRUE(fs::exists(there_ / "outputs/ckpt"));
  EXPECT_TRUE(ask()->kept.empty());  // reported only once
}

// The same for a sent file that the job has overwritten.
TEST_F(HostTreeTest, WhatAJobOverwroteIsNeverRemoved) {
  write(client_ / "ckpt", "start");
  bring(ask().value());
  write(there_ / "ckpt", "step 1");
  bring_back("ckpt");
  EXPECT_TRUE(ask()->needed.empty());
  fs::remove(client_ / "ckpt");
  EXPECT_EQ(ask()->removed, 0U);
  EXPECT_TRUE(fs::exists(there_ / "ckpt"));
}

TEST_F(HostTreeTest, WhatAJobGoesOnWritingStaysAsItIsThere) {
  write(client_ / "train.py", "1");
  bring(ask().value());
  write(there_ / "ckpt", "step 1");
  bring_back("ckpt");
  ASSERT_TRUE(ask());
  write(there_ / "ckpt", "step 10");
  auto answer = ask().value();
  EXPECT_TRUE(answer.needed.empty());
  EXPECT_EQ(answer.theirs, Paths{"ckpt"});
  EXPECT_EQ(ask()->theirs, Paths{"ckpt"});
  write(client_ / "ckpt", "mine, and theirs");  // changed on both sides
  EXPECT_FALSE(ask());
  EXPECT_EQ(needed(*ask({.force = true})), Paths{"ckpt"});
}

TEST_F(HostTreeTest, WhatWasMetIsReplacedAndThenSent) {
  write(client_ / "a", "1");
  write(there_ / "a", "1");
  fs::last_write_time(there_ / "a", fs::last_write_time(client_ / "a"));
  EXPECT_TRUE(ask()->needed.empty());
  write(client_ / "a", "22");
  EXPECT_EQ(needed(*ask()), Paths{"a"});
  auto answer = ask().value();  // the first transfer was cut off before this file
  EXPECT_EQ(needed(answer), Paths{"a"});
  EXPECT_EQ(answer.edited, 0U);
  bring(answer);
  EXPECT_TRUE(ask()->needed.empty());
  fs::remove(client_ / "a");
  EXPECT_EQ(ask()->removed, 1U);
}

// A killed client's files that arrived are known; the rest is sent again.
TEST_F(HostTreeTest, GoesOnAfterATransferThatWasCut) {
  for (const char* name : {"a", "b", "c"})
    write(client_ / name, "1");
  bring(ask().value());
  for (const char* name : {"a", "b", "c"})
    write(client_ / name, "22");
  bring(ask().value(), 1);  // only a
  fs::remove(client_ / "b");
  write(client_ / "c", "333");
  const auto answer = ask().value();
  EXPECT_EQ(needed(answer), Paths{"c"});
  EXPECT_EQ(answer.removed, 1U);  // b, unchanged since the first transfer
  EXPECT_EQ(answer.edited, 0U);
  EXPECT_TRUE(answer.kept.empty());
}

TEST_F(HostTreeTest, RefusesWhatItDidNotSendUnlessForced) {
  write(client_ / "a", "1");
  write(client_ / "b", "1");
  write(there_ / "a", "theirs");
  fs::copy(client_ / "b", there_ / "b");
  fs::last_write_time(there_ / "b", fs::last_write_time(client_ / "b"));
  const auto refused = ask();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("did not send: a"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(refused.error().hint, "--force overwrites them");
  EXPECT_EQ(needed(*ask({.force = true})), Paths{"a"});
}

TEST_F(HostTreeTest, FollowsNoLinkOutOfTheTree) {
  write(client_ / "dir/a", "1");
  bring(ask().value());
  write(top_ / "outside/a", "1");
  fs::last_write_time(top_ / "outside/a", fs::last_write_time(client_ / "dir/a"));
  fs::remove_all(there_ / "dir");
  fs::create_directory_symlink(top_ / "outside", there_ / "dir");
  EXPECT_FALSE(ask());  // the equal file is behind a link
  fs::remove_all(client_ / "dir");
  EXPECT_EQ(ask()->removed, 0U);
  EXPECT_TRUE(fs::exists(top_ / "outside/a"));
  write(client_ / "dir/a", "1");
  EXPECT_TRUE(ask({.force = true}));
  EXPECT_FALSE(fs::is_symlink(there_ / "dir"));
  EXPECT_TRUE(fs::exists(top_ / "outside/a"));
}

TEST_F(HostTreeTest, FilesAndFoldersTakeEachOthersPlace) {
  write(client_ / "a/b", "1");
  bring(ask().value());
  fs::remove_all(client_ / "a");
  write(client_ / "a", "1");
  bring(ask().value());
  EXPECT_TRUE(fs::is_regular_file(there_ / "a"));
  fs::remove(client_ / "a");
  write(client_ / "a/b/c", "1");
  bring(ask().value());
  EXPECT_TRUE(fs::is_regular_file(there_ / "a/b/c"));
  fs::remove_all(client_ / "a");
  write(client_ / "a", "1");
  write(there_ / "a/b/theirs", "1");
  EXPECT_FALSE(ask());
  EXPECT_FALSE(ask({.force = true}));
  EXPECT_TRUE(fs::exists(there_ / "a/b/c"));
}

TEST_F(HostTreeTest, APlaceHasOneOwner) {
  write(client_ / "a", "1");
  bring(ask().value());
  const auto refused = ask({.owner = {"other", "/y"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("holds the tree of laptop:/x, and this is the tree of "
                                         "other:/y"),
            std::string::npos);
  EXPECT_TRUE(ask({.owner = {"other", "/y"}, .force = true}));
  EXPECT_FALSE(ask());
}

TEST_F(HostTreeTest, AnInstallationIsKnownByItsIdAndNotByTheHostsName) {
  write(client_ / "a", "1");
  bring(ask().value());  // sent by an older version
  EXPECT_TRUE(ask({.owner = {"laptop", "/x", "id 1"}}));
  EXPECT_TRUE(ask({.owner = {"renamed", "/x", "id 1"}}));
  const auto refused = ask({.owner = {"renamed", "/x", "id 2"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("on another machine or of another user"),
            std::string::npos);
  EXPECT_FALSE(ask({.owner = {"laptop", "/y", "id 1"}}));
}

TEST_F(HostTreeTest, ARecordOfTheFirstVersionSaysNothingOfWhatWasSent) {
  std::string bytes = "lockstep-synced 1\n";
  for (const char* text : {"/home/me/tree", "laptop", "/x"})
    encode_text(text, bytes);
  encode({Entry{.path = "a", .size = 1, .mtime_ns = 5}}, bytes);
  encode({Entry{.path = "b", .size = 1, .mtime_ns = 5}}, bytes);
  const auto record = decode_record(bytes).value();
  EXPECT_EQ(record.owner, (Owner{"laptop", "/x", ""}));
  EXPECT_TRUE(record.sent.empty());
  EXPECT_EQ(record.coming.size(), 1U);
  ASSERT_EQ(record.met.size(), 1U);
  const auto again = decode_record(encode_record(record)).value();
  EXPECT_EQ(again.met, record.met);
  EXPECT_EQ(again.coming, record.coming);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_record(bytes.substr(0, size))) << size;
}

TEST_F(HostTreeTest, ADryRunChangesNothing) {
  write(client_ / "a", "1");
  EXPECT_EQ(needed(*ask({.dry_run = true})), Paths{"a"});
  EXPECT_FALSE(fs::exists(there_));
  EXPECT_FALSE(fs::exists(top_ / "state"));
}

// A training framework removes out/tmp-* while the outputs are brought back. A process that has
// ended is such a place: its links can be looked at, and are gone when they are read.
TEST_F(HostTreeTest, AListingLeavesOutWhatIsGoneMeanwhile) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const std::string place = "/proc/" + std::to_string(child);
  const auto found = list_tree({.destination = place, .path = "task"}, {top_.string(), {}});
  const auto none = list_tree({.destination = place, .path = "none"}, {top_.string(), {}});
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->empty());
  EXPECT_EQ(code_of(none), Errc::not_found);
}

TEST_F(HostTreeTest, PlacesAreChecked) {
  for (const char* place : {"/", "~", "~/", "..", "a/../..", "./a", "."})
    EXPECT_FALSE(ask({.destination = place})) << place;
  fs::create_directory_symlink("..", top_ / "home/up");
  EXPECT_FALSE(ask({.destination = "up"}));
  fs::create_directories(top_ / "disk");
  fs::create_directory_symlink(top_ / "disk", top_ / "home/tree");
  EXPECT_EQ(ask()->place, (top_ / "disk").string());
  EXPECT_EQ(ask({.destination = "~/new/place/"})->place, (top_ / "home/new/place").string());
}

}  // namespace
}  // namespace lockstep::sync
