#include "agent/dump_request.h"

#include "io/fd.h"
#include "io/loop_testing.h"
#include "io/unix_socket.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep::agent {
namespace {

using std::chrono::milliseconds;

const std::string kDump = R"({"version":"2.10","entries":[{"collective_seq_id":7}]})";

// An attempt whose ranks do what a test says.
class DumpRequestTest : public testing::Test {
 protected:
  DumpRequestTest() {
    char pattern[] = "/tmp/dump_request_XXXXXX";
    attempt_ = mkdtemp(pattern);
    folder_ = RecorderFolder::make(attempt_).value();
  }
  ~DumpRequestTest() override {
    std::filesystem::remove_all(folder_->path());
    std::filesystem::remove_all(attempt_);
  }

  // The rank opens its pipe as PyTorch does.
  io::Fd open_pipe(int rank) const {
    const std::string path = file("rank_", rank) + ".pipe";
    mkfifo(path.c_str(), 0666);
    return io::Fd(open(path.c_str(), O_RDONLY | O_NONBLOCK));
  }
  std::string file(const std::string& stem, int rank) const {
    return folder_->path() + "/" + stem + std::to_string(rank);
  }
  void write(int rank, const std::string& bytes) const {
    std::ofstream(file("trace_rank_", rank)) << bytes;
  }
  DumpRequest::Answers ask(const std::vector<int>& ranks, const std::function<void()>& meanwhile,
                           milliseconds limit = milliseconds(2000)) {
    DumpRequest request(loop_, {.limit = limit, .pause = milliseconds(5), .dump = limits_});
    std::optional<DumpRequest::Answers> answers;
    request.start(*folder_, ranks, [&](DumpRequest::Answers all) { answers = std::move(all); });
    EXPECT_FALSE(answers);
    meanwhile();
    EXPECT_TRUE(io::run_until(loop_, [&] { return answers.has_value(); }));
    return answers.value_or(DumpRequest::Answers());
  }

  io::Loop loop_;
  std::string attempt_;
  std::optional<RecorderFolder> folder_;
  recorder::DumpLimits limits_ = {};
};

TEST_F(DumpRequestTest, EachRankAnswersInItsOwnWay) {
  const io::Fd ranks[] = {open_pipe(0), open_pipe(1), open_pipe(2)};
  open_pipe(3);  // closed again: nobody reads
  const auto answers = ask(
      {0, 1, 2, 3, 4},
      [&] {
        char byte = 0;
        EXPECT_EQ(read(ranks[0].get(), &byte, 1), 1);
        write(0, kDump);
        write(1, kDump.substr(0, 30));  // and never the rest
      },
      milliseconds(200));
  ASSERT_EQ(answers.dumps.size(), 1U);
  EXPECT_EQ(answers.dumps.at(0).entries.at(0).sequence, 7);
  EXPECT_EQ(answers.unreadable, std::vector<int>{1});
  EXPECT_EQ(answers.silent, std::vector<int>{2});
  EXPECT_EQ(answers.without, (std::vector<int>{3, 4}));
}

TEST_F(DumpRequestTest, ADumpThatGrowsIsReadWhenItIsWhole) {
  const io::Fd pipe = open_pipe(0);
  write(0, kDump.substr(0, 20));
  io::Timer later(loop_);
  const auto answers = ask({0}, [&] {
    write(0, kDump.substr(0, 20));
    later.start(milliseconds(60), [&] { write(0, kDump); });
  });
  EXPECT_EQ(answers.dumps.size(), 1U);
  // The file that was there before belongs to PyTorch's own time limit.
  EXPECT_TRUE(std::filesystem::exists(file("timeout_rank_", 0)));
}

TEST_F(DumpRequestTest, TellsWhoHasWritten) {
  const io::Fd pipe = open_pipe(0);
  const io::Fd other = open_pipe(1);
  DumpRequest request(loop_, {.limit = milliseconds(50), .pause = milliseconds(5)});
  bool answered = false;
  request.start(*folder_, {0, 1}, [&](const DumpRequest::Answers&) { answered = true; });
  EXPECT_EQ(request.take_writers(), std::set<int>{});
  write(0, kDump);
  EXPECT_EQ(request.take_writers(), std::set<int>{0}) << "before the request has looked";
  EXPECT_TRUE(io::run_until(loop_, [&] { return answered; }));
  EXPECT_EQ(request.take_writers(), std::set<int>{0}) << "since the last call";
  EXPECT_EQ(request.take_writers(), std::set<int>{});
}

TEST_F(DumpRequestTest, HostileFilesAreNotRead) {
  limits_.bytes = 1000;
  const io::Fd ranks[] = {open_pipe(0), open_pipe(1), open_pipe(2), open_pipe(3)};
  const auto answers = ask(
      {0, 1, 2, 3},
      [&] {
        write(0, std::string(1001, ' '));
        write(1,
              "\x80\x02"
              "cos\nsystem\nU\x02id\x85R.");
        mkfifo(file("trace_rank_", 2).c_str(), 0600);
        symlink("/dev/zero", file("trace_rank_", 3).c_str());
      },
      milliseconds(200));
  EXPECT_TRUE(answers.dumps.empty());
  EXPECT_EQ(answers.unreadable, (std::vector<int>{0, 1}));
  EXPECT_EQ(answers.silent, (std::vector<int>{2, 3}));
  for (const int rank : {2, 3})
    unlink(file("trace_rank_", rank).c_str());
}

TEST_F(DumpRequestTest, APipeThatIsNoPipeOrFullDoesNotBlock) {
  std::ofstream(file("rank_", 0) + ".pipe") << "text";
  const io::Fd full = open_pipe(1);
  const io::Fd end(open((file("rank_", 1) + ".pipe").c_str(), O_WRONLY | O_NONBLOCK));
  const std::string bytes(4096, 'x');
  while (::write(end.get(), bytes.data(), bytes.size()) > 0) {
  }
  const auto answers = ask(
      {0, 1}, [] {}, milliseconds(50));
  EXPECT_EQ(answers.without, std::vector<int>{0});
  EXPECT_EQ(answers.silent, std::vector<int>{1});
}

TEST_F(DumpRequestTest, PipesAndDumpsGoUnlessSomethingIsKept) {
  const io::Fd pipe = open_pipe(0);
  (void)ask({0}, [&] { write(0, kDump); });
  EXPECT_FALSE(folder_->remove());
  EXPECT_TRUE(std::filesystem::is_empty(folder_->path()));
  const io::Fd again = open_pipe(0);
  (void)ask({0}, [&] { write(0, kDump); });
  EXPECT_EQ(folder_->keep("hang-1"), folder_->path() + "/hang-1_rank_");
  EXPECT_EQ(folder_->keep("hang-2"), "");
  EXPECT_FALSE(folder_->remove()) << "the user knows of these";
  EXPECT_TRUE(std::filesystem::exists(file("hang-1_rank_", 0)));
  write(0, kDump);
  EXPECT_TRUE(folder_->remove());
  EXPECT_TRUE(std::filesystem::exists(file("trace_rank_", 0)));
}

// A control plane that has accepted nothing yet.
class Plane {
 public:
  explicit Plane(const std::string& path) : listener_(io::listen_unix(path, 0).value()) {}
  // Reads the question and gives an answer. Returns the question.
  std::string answer(const std::string& bytes) const {
    const io::Fd connection(accept(listener_.get(), nullptr, nullptr));
    std::string asked(4096, '\0');
    asked.resize(static_cast<std::size_t>(recv(connection.get(), asked.data(), asked.size(), 0)));
    EXPECT_EQ(send(connection.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    return asked;
  }

 private:
  io::Fd listener_;
};

std::string http_answer(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

TEST_F(DumpRequestTest, ControlPlanesAreAskedWithoutAPipe) {
  limits_.bytes = 1000;
  ASSERT_TRUE(folder_->add_aid());
  const auto socket = [&](int rank) { return folder_->aid() + "/" + std::to_string(rank); };
  std::vector<Plane> planes;
  planes.reserve(7);
  for (int rank = 0; rank < 7; ++rank)
    planes.emplace_back(socket(rank));
  const auto full = io::connect_unix_now(socket(6));
  const io::Fd pipe = open_pipe(8);
  const auto answers = ask(
      {0, 1, 2, 3, 4, 5, 6, 7, 8},
      [&] {
        EXPECT_TRUE(planes[0]
                        .answer(http_answer("200 OK", kDump))
                        .starts_with("POST /handler/fr_trace_json HTTP/1.1\r\n"));
        planes[1].answer(http_answer("404 Not Found", "Handler not found"));
        planes[2].answer(http_answer("200 OK", std::string(1001, ' ')));
        planes[3].answer(http_answer("200 OK", kDump).substr(0, 70));
        planes[4].answer("SSH-2.0-OpenSSH_9.2\r\n");
      },
      milliseconds(1000));
  ASSERT_EQ(answers.dumps.size(), 1U);
  EXPECT_EQ(answers.dumps.at(0).entries.at(0).sequence, 7);
  EXPECT_EQ(answers.without, (std::vector<int>{7, 1})) << "no socket, no handler";
  EXPECT_EQ(answers.unreadable, (std::vector<int>{2, 3, 4})) << "too large, cut off, no HTTP";
  EXPECT_EQ(answers.silent, (std::vector<int>{6, 5, 8})) << "takes no connection, no answer";
  EXPECT_EQ(folder_->keep("hang-1"), folder_->path() + "/hang-1_rank_");
  std::string kept;
  std::getline(std::ifstream(file("hang-1_rank_", 0)), kept);
  EXPECT_EQ(kept, kDump);
  const std::string aid = folder_->aid();
  EXPECT_TRUE(std::filesystem::exists(aid + "/sitecustomize.py"));
  folder_->remove();
  EXPECT_FALSE(std::filesystem::exists(aid));
}

TEST_F(DumpRequestTest, AControlPlaneThatIsAskedHasWork) {
  ASSERT_TRUE(folder_->add_aid());
  Plane plane(folder_->aid() + "/0");
  DumpRequest request(loop_, {.limit = milliseconds(50), .pause = milliseconds(5)});
  request.start(*folder_, {0}, [](const DumpRequest::Answers&) {});
  EXPECT_EQ(request.take_writers(), std::set<int>{0}) << "before the request has looked";
}

TEST_F(DumpRequestTest, NoCallAfterCancel) {
  const io::Fd pipe = open_pipe(0);
  DumpRequest request(loop_, {.limit = milliseconds(20), .pause = milliseconds(5)});
  bool called = false;
  request.start(*folder_, {0}, [&](const DumpRequest::Answers&) { called = true; });
  EXPECT_TRUE(request.running());
  request.cancel();
  EXPECT_FALSE(request.running());
  io::Timer later(loop_);
  bool over = false;
  later.start(milliseconds(60), [&] { over = true; });
  EXPECT_TRUE(io::run_until(loop_, [&] { return over; }));
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace lockstep::agent
