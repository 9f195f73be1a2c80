// Both parts of the way through a login host, without any host: the test answers for it.
#include "jobs/on_slurm/node_way.h"

#include "base/error_testing.h"
#include "jobs/on_slurm/slurm_once.h"
#include "jobs/on_slurm/slurm_world_testing.h"

namespace lockstep::jobs::on_slurm {
namespace {

using Texts = std::vector<std::string>;

class NodeWayTest : public SlurmWorldTest {
 protected:
  // Keeps the job in the client's book.
  void submit_through(const std::vector<hosts::HostPlace>& nodes) {
    KnownJob job = known();
    job.nodes = nodes;
    ASSERT_TRUE(JobBook::open(io::state_folder())->add(job));
  }
  Result<int> pass(const Texts& words) {
    return pass_through_login(words, [this](io::Loop&, const hosts::CommandRequest& request) {
      asked_.push_back(request);
      return Result<std::vector<hosts::HostEnding>>({ending_});
    });
  }

  hosts::HostEnding ending_;
  std::vector<hosts::CommandRequest> asked_;
};

TEST_F(NodeWayTest, TheClientsBytesGoToTheLoginHost) {
  submit_through({{.name = "login", .target = {.host = "login"}}});
  ending_.code = 3;
  EXPECT_EQ(pass({kThroughLogin, "aaaa1111", "2"}).value(), 3);
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].hosts.at(0).name, "login");
  EXPECT_EQ(asked_[0].argv, (Texts{"link", kToNode, "aaaa1111", "2"}));
  EXPECT_TRUE(asked_[0].own_binary);
  EXPECT_EQ(asked_[0].input, hosts::CommandRequest::Input::ours);
  EXPECT_EQ(asked_[0].output, hosts::CommandRequest::Output::print);
  ending_ = {.code = 255, .error = "login: no route"};
  EXPECT_EQ(pass({kThroughLogin, "aaaa1111", "2"}).error().message, "login: no route");
}

TEST_F(NodeWayTest, AJobWithoutALoginHostHasNoSuchWay) {
  submit_through({});
  EXPECT_EQ(code_of(pass({kThroughLogin, "aaaa1111", "0"})), Errc::invalid_input);
  EXPECT_EQ(code_of(pass({kThroughLogin, "bbbb2222", "0"})), Errc::not_found);
  for (const Texts& words : {Texts{kThroughLogin},
                             {kThroughLogin, "aaaa1111"},
                             {kThroughLogin, "aaaa1111", "-1"},
                             {kThroughLogin, "aaaa1111", "99999999999"},
                             {kThroughLogin, "aaaa1111", "0", "x"}})
    EXPECT_EQ(code_of(pass(words)), Errc::invalid_input);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(NodeWayTest, TheLoginHostLeadsOnToTheNode) {
  ASSERT_TRUE(note_submitted(slurm::JobFolder(place_.folder), known()));
  const auto command = link_on_login({kToNode, "aaaa1111", "2"});
  ASSERT_TRUE(command) << command.error().message;
  const Texts& argv = command->argv;
  EXPECT_EQ(argv.front(), "srun");
  for (const char* word : {"--jobid=7", "--relative=2", "--overlap", "--unbuffered"})
    EXPECT_NE(std::find(argv.begin(), argv.end(), word), argv.end()) << word;
  EXPECT_EQ(Texts(argv.end() - 3, argv.end()),
            (Texts{place_.folder + "/lockstep", "link", "--in-step"}));
  EXPECT_EQ(code_of(link_on_login({kToNode, "../x", "0"})), Errc::not_found);
  EXPECT_EQ(code_of(link_on_login({kToNode, "aaaa1111", "x"})), Errc::invalid_input);
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
