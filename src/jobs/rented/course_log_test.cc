#include "jobs/rented/course_log.h"

#include "jobs/rented/client_log.h"
#include "jobs/rented/course_words.h"
#include "rent/job_claim.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

namespace fs = std::filesystem;

// The log takes the standard streams of its process, so each writer is a child.
struct CourseLogs : ::testing::Test {
  CourseLogs() {
    std::string name = ::testing::TempDir() + "course_logXXXXXX";
    folder = mkdtemp(name.data());
    setenv("XDG_STATE_HOME", folder.c_str(), 1);
    fs::create_directories(folder + "/lockstep/rentals");
  }
  ~CourseLogs() override {
    unsetenv("XDG_STATE_HOME");
    fs::remove_all(folder);
  }

  static void in_process(const std::function<void()>& act) {
    const pid_t pid = fork();
    if (pid == 0) {
      act();
      _exit(0);
    }
    int how = 0;
    ASSERT_EQ(waitpid(pid, &how, 0), pid);
    ASSERT_EQ(how, 0);
  }

  // Writes to the log in a process of the course, which then ends.
  static void write(const std::function<void()>& print) {
    in_process([&] {
      CourseLog log("lab");
      if (!log.begin(0)) _exit(1);
      print();
    });
  }

  static std::string text_of(const std::string& path) {
    return plain_text(io::read_file(path, 64 << 20).value_or(""));
  }

  // Reads all that is there. Errors are in brackets.
  static std::string read(CourseLogReader& reader) {
    std::string text;
    const auto put = [&](link::Stream stream, std::string_view bytes) {
      text += stream == link::Stream::out ? std::string(bytes) : fmt::format("[{}]", bytes);
    };
    while (reader.read(put)) {
    }
    return text;
  }

  std::string folder;
};

constexpr int kTurns = 12;
constexpr int kLinesOfTurn = 30'000;

std::string line(int number) {
  return fmt::format("{} {}\n", number, std::string(100, 'x'));
}

void print_lines(int from, int to) {
  for (int i = from; i < to; ++i)
    std::fputs(line(i).c_str(), stdout);
}

// Prints 3 MiB for each byte from `turn`, and writes a byte to `done` then.
void write_in_turns(int turn, int done) {
  CourseLog log("lab");
  if (!log.begin(0)) _exit(1);
  char byte = 0;
  for (int part = 0; part < kTurns; ++part) {
    if (::read(turn, &byte, 1) != 1) _exit(1);
    print_lines(part * kLinesOfTurn, (part + 1) * kLinesOfTurn);
    std::fflush(stdout);
    (void)!::write(done, "d", 1);
  }
}

TEST_F(CourseLogs, AReaderGetsBothStreamsFromWhereItBegan) {
  write([] { std::puts("before"); });
  CourseLogReader reader("lab");
  EXPECT_EQ(read(reader), "");
  write([] {
    std::puts("one");
    std::fflush(stdout);
  });
  write([] { std::fputs("trouble\n", stderr); });
  EXPECT_EQ(read(reader), "one\n[trouble\n]");
  EXPECT_EQ(read(reader), "");
  EXPECT_EQ(text_of(rent::follow_log("lab")), "before\none\ntrouble\n");
}

TEST_F(CourseLogs, AReaderFromTheBeginningGetsWhatWasSaidBefore) {
  write([] { std::fputs("early\n", stdout); });
  CourseLogReader reader("lab", CourseLogReader::From::beginning);
  EXPECT_EQ(read(reader), "early\n");
}

TEST_F(CourseLogs, AReaderMayComeBeforeTheLog) {
  CourseLogReader reader("lab");
  EXPECT_EQ(read(reader), "");
  write([] { std::puts("one"); });
  EXPECT_EQ(read(reader), "one\n");
}

TEST_F(CourseLogs, ALongLogKeepsItsBeginningAndItsEnd) {
  CourseLogReader reader("lab");
  constexpr int kLines = 400'000;
  write([] { print_lines(0, kLines); });
  const auto paths = rent::follow_logs("lab");
  for (const std::string& path : paths)
    EXPECT_LT(fs::file_size(path), 9U << 20) << path;
  EXPECT_TRUE(text_of(paths[0]).starts_with("0 xxx"));
  const std::string end = text_of(paths[1]).substr(text_of(paths[1]).find('\n') + 1) +
                          text_of(paths[2]).substr(text_of(paths[2]).find('\n') + 1);
  EXPECT_TRUE(end.ends_with(line(kLines - 1)));
  EXPECT_TRUE(text_of(paths[2]).starts_with(
      "lockstep: this log is long: it begins in lab.log.1; lab.log.2 "));
  // This reader comes when the middle is gone.
  const std::string got = read(reader);
  EXPECT_TRUE(got.starts_with("0 xxx"));
  EXPECT_TRUE(got.ends_with(std::string(100, 'x') + "\n"));
}

// As the view on the owner does for a client that has lost its link.
TEST_F(CourseLogs, AClientThatComesAgainMissesNothingOfALongLog) {
  std::string whole;
  for (int i = 0; i < 400'000; ++i)
    whole += line(i);
  write([] { print_lines(0, 399'000); });
  const auto resumed = [](std::uint64_t shown, bool& gap) {
    ClientLog client(shown);
    CourseLogReader reader("lab", CourseLogReader::From::beginning);
    StreamDecoder decoder;
    decoder.begin(shown);
    std::string out;
    gap = false;
    while (reader.read([&](link::Stream stream, std::string_view bytes) {
      const std::string text = client.encode(reader.at(), stream, bytes);
      gap = client.take_gap() || gap;
      decoder.decode(text, [&](link::Stream to, std::string_view piece) {
        if (to == link::Stream::out) out += piece;
      });
    })) {
    }
    return std::pair(out, decoder.at());
  };
  bool gap = false;
  const auto [first, shown] = resumed(0, gap);
  EXPECT_TRUE(gap) << "the middle is gone";
  EXPECT_GT(shown, 399'000U * 100);
  write([] { print_lines(399'000, 400'000); });
  const auto [second, end] = resumed(shown, gap);
  EXPECT_FALSE(gap);
  EXPECT_EQ(second, whole.substr(whole.find(line(399'000))));
  EXPECT_EQ(resumed(end, gap).first, "");
  EXPECT_GT(resumed(9U << 20, gap).first.size(), 8U << 20);
  EXPECT_TRUE(gap) << "all that the client missed is not kept";
}

TEST_F(CourseLogs, AReaderThatKeepsUpMissesNothing) {
  std::array<int, 2> turn{};
  std::array<int, 2> done{};
  ASSERT_EQ(pipe(turn.data()), 0);
  ASSERT_EQ(pipe(done.data()), 0);
  const pid_t writer = fork();
  if (writer == 0) {
    write_in_turns(turn[0], done[1]);
    _exit(0);
  }
  CourseLogReader reader("lab");
  std::string got;
  char byte = 0;
  for (int part = 0; part < kTurns; ++part) {
    ASSERT_EQ(::write(turn[1], "t", 1), 1);
    ASSERT_EQ(::read(done[0], &byte, 1), 1);
    got += read(reader);
  }
  int how = 0;
  ASSERT_EQ(waitpid(writer, &how, 0), writer);
  got += read(reader);
  EXPECT_FALSE(reader.take_gap());
  // Each part begins with a remark, often in the middle of a line.
  for (std::size_t at = got.find('['); at != std::string::npos; at = got.find('[', at))
    got.erase(at, got.find(']', at) + 1 - at);
  std::string whole;
  for (int i = 0; i < kTurns * kLinesOfTurn; ++i)
    whole += line(i);
  EXPECT_TRUE(got == whole) << got.size() << " bytes of " << whole.size();
}

TEST_F(CourseLogs, AnotherRentalOfThatNameBeginsItsOwn) {
  write([] { std::puts("the first"); });
  CourseLogReader reader("lab");
  in_process([] {
    CourseLog log("lab");
    // As if the second was rented after the last line of the first.
    if (!log.begin(*log_written_ms("lab") + 1)) _exit(1);
    std::puts("the second");
  });
  EXPECT_EQ(text_of(rent::follow_log("lab")), "the second\n");
  EXPECT_EQ(read(reader), "the second\n");
  EXPECT_FALSE(reader.take_gap());
}

TEST_F(CourseLogs, ShowsHowFarATransferIs) {
  const CourseLogReader reader("lab");
  EXPECT_FALSE(reader.progress());
  in_process([&] {
    CourseLog log("lab");
    if (!log.begin(0)) _exit(1);
    log.show(Progress{5'000'000, 12});
    const auto first = reader.progress();
    if (!first || first->bytes != 5'000'000 || first->of != 12) _exit(2);
    log.show(Progress{7, 0});
    const auto second = reader.progress();
    if (!second || second->bytes != 7 || second->of != 0) _exit(3);
    log.show({});
    if (reader.progress()) _exit(4);
  });
  EXPECT_FALSE(reader.progress());
}

TEST_F(CourseLogs, OldLogsGoUnlessTheirClusterIsRented) {
  const std::string rentals = folder + "/lockstep/rentals/";
  for (const char* name : {"a.log", "a.log.1", "b.log", "a.lock"})
    std::ofstream(rentals + name) << "words";
  const auto left = [&](const std::string& name) { return fs::exists(rentals + name); };
  const std::int64_t written = *log_written_ms("a");
  const std::int64_t month = std::int64_t{30} * 86'400'000;
  const cloud::Rental open{.id = "r", .cluster = "b", .owner = {}};
  drop_old_logs({open}, written + month - 60'000);
  EXPECT_TRUE(left("a.log"));
  drop_old_logs({open}, written + month + 60'000);
  EXPECT_FALSE(left("a.log") || left("a.log.1"));
  EXPECT_TRUE(left("b.log") && left("a.lock"));
}

}  // namespace
}  // namespace lockstep::jobs::rented
