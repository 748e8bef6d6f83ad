// SPDX-License-Identifier: MIT
#include "client/cli/cli.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "client/runtime/digest.h"
#include "client/runtime/files.h"
#include "client/runtime/program_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/fake_service.h"
#include "tests/client/status_matcher.h"
#include "tests/client/tiny_program.h"

namespace hackc::client {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("hackc_cli_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    model_ = (folder_ / "tiny.json").string();
    std::ofstream(model_) << R"({"model_type": "llama", "hidden_size": 64})";
    service_.events = TinyEvents();
  }
  void TearDown() override {
    fs::remove_all(folder_);
    if (HasFailure()) std::cerr << "the last command said: " << err_.str() << out_.str();
  }

  int Run(std::vector<std::string> arguments, bool live = false) {
    out_.str("");
    err_.str("");
    CliEnvironment environment;
    environment.err_is_terminal = live;
    return RunCli(arguments, out_, err_, environment);
  }
  int Submit(std::vector<std::string> more = {}, bool live = false) {
    std::vector<std::string> arguments = {"submit", model_, "--server", service_.address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments, live);
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }
  std::string OneErrorLine() const {
    std::string text = err();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    return text;
  }

  fs::path folder_;
  std::string model_;
  FakeService service_;
  std::ostringstream out_, err_;
};

TEST_F(CliTest, SubmitPrintsTheTable) {
  ASSERT_EQ(Submit(), kExitOk) << err();
  EXPECT_THAT(out(), HasSubstr("tiny  sm_90a  float32  sha256:"));
  std::vector<std::string> rows;
  std::istringstream lines(out());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(!line.empty() && line.back() == ' ') << line;
    if (line.find("what ") != line.npos) rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), 5u);
  // The program's order, not that of arrival.
  EXPECT_EQ(rows[0].rfind("double", 0), 0u);
  EXPECT_EQ(rows[4].rfind("head", 0), 0u);
  EXPECT_THAT(rows[2], testing::ContainsRegex(
                           "^layer +what layer computes +ceil\\(seq / 16\\) = 4 +128 +66048 +40 +0 "
                           "+11 +miss +3.5 +250.0 +0.0$"));
  EXPECT_THAT(rows[4], testing::ContainsRegex(" hit +0.0 +0.0 +0.0$"));
  EXPECT_THAT(out(), HasSubstr("stages in ms: frontend 3.2"));
  EXPECT_THAT(out(), HasSubstr("5 kernels: 1 from the cache, 4 compiled; 1234.5 ms\n"));
  EXPECT_THAT(err(), HasSubstr("compile 2/5\n"));
  EXPECT_THAT(err(), HasSubstr("kernel layer compiled in 254 ms\n"));
  EXPECT_THAT(err(), HasSubstr("kernel head from the cache\n"));
  EXPECT_THAT(err(), Not(HasSubstr("\x1b")));
  EXPECT_FALSE(service_.compile_request.with_ir()) << "a warm call must stay small";
  EXPECT_FALSE(service_.compile_request.with_cubins());
}

constexpr char kTiming[] =
    R"({"format": "1", "gpu": "NVIDIA H200", "driver": "580.95.05", "final": false,
  "disturbed": true, "disturbances": ["a copy was slow"], "copy_bytes_per_second": 4.05e12,
  "problems": ["kernel \"head\": hang: no answer within 30 s; killed"],
  "kernels": [
    {"name": "layer", "status": "ok", "times": [
      {"shape": "largest", "symbols": {"seq": 64}, "median_us": 123.45, "spread": 0.012, "disturbed": false,
       "floor_us": 61.7, "share_of_floor": 0.5, "predicted_us": 55.12},
      {"shape": "smallest", "symbols": {"seq": 1}, "median_us": 2.5, "spread": 0.081, "disturbed": true,
       "floor_us": 0.2, "share_of_floor": 0.08, "predicted_us": 0.17}]},
    {"name": "head", "status": "hang", "times": []}],
  "entry_points": [{"name": "prefill", "launches": 4, "kernel_launches": {"layer": 3, "head": 1}, "totals": [
    {"shape": "largest", "symbols": {"seq": 64}, "complete": false, "median_us": 370.3, "floor_us": 185.1,
     "share_of_floor": 0.5, "predicted_us": 165.4}]}]})";

TEST_F(CliTest, TimesAreATableOfTheirOwn) {
  for (v1::CompileEvent& event : service_.events) {
    if (event.has_report()) event.mutable_report()->set_timing_json(kTiming);
  }
  ASSERT_EQ(Submit({"--out", (folder_ / "out").string()}), kExitOk) << err();
  const std::string table = R"(times on NVIDIA H200, driver 580.95.05

kernel                 launches   shape   median us  spread  floor us  of floor  predicted us
layer                  prefill 3  seq 64      123.5     1 %     61.70      50 %         55.12
                                  seq 1        2.50   8 % !      0.20       8 %          0.17
head                   prefill 1  hang
= prefill, incomplete  4          seq 64      370.3             185.1      50 %         165.4

floor: 4050 GB/s, as a copy reached; operations as the target's data sheet
kernel "head": hang: no answer within 30 s; killed
disturbed: a copy was slow
something else ran on the GPU (!): these times are not kept
)";
  EXPECT_THAT(out(), testing::EndsWith("\n" + table));
  ASSERT_EQ(Run({"report", (folder_ / "out").string()}), kExitOk) << err();
  EXPECT_EQ(out(), table);
  ASSERT_EQ(Run({"report", (folder_ / "out" / "report.json").string()}), kExitOk) << err();
  EXPECT_EQ(out(), table);
}

TEST_F(CliTest, TimesThatAreNoJsonAreNotReadable) {
  for (const std::string& text : {std::string("{"), std::string(100000, '[')}) {
    for (v1::CompileEvent& event : service_.events) {
      if (event.has_report()) event.mutable_report()->set_timing_json(text);
    }
    ASSERT_EQ(Submit(), kExitOk) << err();
    EXPECT_THAT(out(), testing::EndsWith("\nthe timing report is not readable\n"));
    ASSERT_EQ(Submit({"--json"}), kExitOk) << err();
    EXPECT_TRUE(json::parse(out()).at("timing").is_null());
  }
}

TEST_F(CliTest, AReportWithoutTimesSaysWhereTheyComeFrom) {
  ASSERT_EQ(Submit({"--out", (folder_ / "out").string()}), kExitOk) << err();
  EXPECT_EQ(Run({"report", (folder_ / "out").string()}), kExitOther);
  EXPECT_THAT(OneErrorLine(),
              HasSubstr("holds no times; they come from a server that was started"));
  std::ofstream(folder_ / "broken.json") << "[1]";
  EXPECT_EQ(Run({"report", (folder_ / "broken.json").string()}), kExitInvalidArgument);
  EXPECT_THAT(OneErrorLine(), HasSubstr("broken.json: expected a JSON object"));
}

TEST_F(CliTest, AReportThatIsNoneIsAnError) {
  const fs::path path = folder_ / "report.json";
  for (auto [text, expected] :
       {std::make_pair("{\"timing\": 5}", "timing: expected a JSON object, got number"),
        {"[]", "expected a JSON object, got array"},
        {"{", "not JSON"},
        {"{\"timing\": {}, \"timing\": {}}", "timing: given twice"}}) {
    ASSERT_THAT(WriteFile(path, text), Ok());
    EXPECT_EQ(Run({"report", path.string()}), kExitInvalidArgument) << text;
    EXPECT_THAT(OneErrorLine(), HasSubstr(path.string() + ": " + expected));
  }
}

TEST_F(CliTest, SubmitRewritesOneLineOnATerminal) {
  ASSERT_EQ(Submit({}, /*live=*/true), kExitOk);
  EXPECT_THAT(err(), HasSubstr("\r\x1b[Kcompile 2/5\r\x1b[K"));
  EXPECT_THAT(err(), Not(HasSubstr("\n")));
  EXPECT_THAT(err(), testing::EndsWith("\r\x1b[K")) << "the line must be wiped at the end";
}

TEST_F(CliTest, SubmitPrintsJson) {
  ASSERT_EQ(Submit({"--json"}), kExitOk);
  json answer = json::parse(out());
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_EQ(answer["arch"], "sm_90a");
  EXPECT_EQ(answer["program_digest"], Sha256Digest(TinyProgram().SerializeAsString()));
  EXPECT_EQ(answer["compile_ms"], 1234.5);
  EXPECT_EQ(answer["cache"], (json{{"hits", 1}, {"misses", 4}, {"program", "miss"}}));
  ASSERT_EQ(answer["kernels"].size(), 5u);
  json layer = answer["kernels"][2];
  EXPECT_EQ(layer["name"], "layer");
  EXPECT_EQ(layer["key"], Sha256Digest("key of layer"));
  EXPECT_EQ(layer["digest"], Sha256Digest("hackc_layer"));
  EXPECT_EQ(layer["entry"], "hackc_layer");
  EXPECT_EQ(layer["cubin_bytes"], 11);
  EXPECT_EQ(layer["registers"], 40);
  EXPECT_EQ(layer["shared_bytes"], 66048);
  EXPECT_EQ(layer["spill_bytes"], 0);
  EXPECT_EQ(layer["cache"], "miss");
  EXPECT_EQ(layer["grid"], (json{"ceil(seq / 16)", "1", "1"}));
  EXPECT_EQ(layer["grid_at_max"], (json{4, 1, 1}));
  EXPECT_EQ(layer["block"], (json{128, 1, 1}));
  EXPECT_EQ(layer["times"]["nvrtc"], 250.0);
  EXPECT_EQ(answer["kernels"][4]["cache"], "hit");
}

TEST_F(CliTest, SubmitSendsWhatWasAsked) {
  ASSERT_EQ(Submit({"--arch", "sm_120a", "--dtype", "float16", "--batch", "2", "--seq", "1..513",
                    "--past", "0..4096", "--layers", "3", "--page-size", "16", "--logits", "last"}),
            kExitOk);
  const v1::ModelDescription& model = service_.compile_request.model();
  EXPECT_EQ(service_.compile_request.target().arch(), "sm_120a");
  EXPECT_EQ(model.name(), "tiny");
  EXPECT_EQ(model.config().fields().at("hidden_size").number_value(), 64);
  EXPECT_EQ(model.dtype(), v1::DTYPE_FLOAT16);
  EXPECT_EQ(model.batch().min(), 2);
  EXPECT_EQ(model.batch().max(), 2);
  EXPECT_EQ(model.seq().min(), 1);
  EXPECT_EQ(model.seq().max(), 513);
  EXPECT_EQ(model.past().max(), 4096);
  EXPECT_EQ(model.layers(), 3);
  EXPECT_EQ(model.page_size(), 16);
  EXPECT_EQ(model.logits(), v1::ModelDescription::LOGITS_LAST);
}

TEST_F(CliTest, SubmitWritesAFolderThatTheRuntimeReads) {
  fs::path folder = folder_ / "new" / "out";
  ASSERT_EQ(Submit({"--out", folder.string()}), kExitOk) << err();
  EXPECT_TRUE(service_.compile_request.with_ir());
  EXPECT_TRUE(service_.compile_request.with_cubins());
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(fs::relative(entry.path(), folder).string());
  }
  std::set<std::string> expected = {"program.pb", "program.json", "report.json", "graph.hir",
                                    "tensor.hir"};
  for (std::string kernel : {"double", "embed", "layer", "copy", "head"}) {
    expected.insert(kernel + ".cubin");
    for (std::string file : {"loop.hir", "tile.hir", "kernel.hir", "cuda.cu"}) {
      expected.insert(kernel + "/" + file);
    }
  }
  EXPECT_EQ(files, expected);
  auto read = ReadProgramFolder(folder);
  ASSERT_THAT(read, Ok());
  EXPECT_EQ(read->program.SerializeAsString(), TinyProgram().SerializeAsString());
  EXPECT_EQ(read->cubins[kLayer], "hackc_layer");
  EXPECT_EQ(*ReadFile(folder / "layer" / "cuda.cu", 100), "cuda of layer\n");
  EXPECT_EQ(json::parse(*ReadFile(folder / "report.json", 1 << 20))["kernels"].size(), 5u);
  EXPECT_EQ(json::parse(*ReadFile(folder / "program.json", 1 << 20))["model"], "tiny");

  ASSERT_THAT(WriteFile(folder / "copy.cubin", "hackc_c0py"), Ok());
  EXPECT_THAT(ReadProgramFolder(folder),
              Fails(absl::StatusCode::kDataLoss, "copy.cubin: 10 bytes"));
  fs::remove(folder / "copy.cubin");
  EXPECT_THAT(ReadProgramFolder(folder), Fails(absl::StatusCode::kNotFound, "copy.cubin"));
  ASSERT_THAT(WriteFile(folder / "program.pb", "rubbish"), Ok());
  EXPECT_THAT(ReadProgramFolder(folder),
              Fails(absl::StatusCode::kDataLoss, "not a serialised Program"));
}

TEST_F(CliTest, AProgramIsReplacedAsAWhole) {
  const fs::path folder = folder_ / "out";
  v1::Program old;
  old.add_kernels()->set_name("old");
  old.add_kernels()->set_name("copy");
  for (const char* file : {"old.cubin", "old/loop.hir", "copy.cubin", "copy/mine", "mine.cubin",
                           "kernel.hir", "report.json"}) {
    ASSERT_THAT(WriteFile(folder / file, "before"), Ok());
  }
  ASSERT_THAT(WriteFile(folder / "program.pb", old.SerializeAsString()), Ok());
  ASSERT_EQ(Submit({"--out", folder.string()}), kExitOk) << err();
  EXPECT_THAT(ReadProgramFolder(folder).status(), Ok());
  for (const char* file : {"old.cubin", "old", "kernel.hir", "program.pb.new"}) {
    EXPECT_FALSE(fs::exists(folder / file)) << file;
  }
  for (const char* file : {"copy/mine", "mine.cubin"}) {
    EXPECT_EQ(*ReadFile(folder / file, 100), "before") << file;
  }
  // One that cannot be written leaves no program that looks complete.
  fs::remove(folder / "head.cubin");
  fs::create_directories(folder / "head.cubin" / "mine");
  EXPECT_EQ(Submit({"--out", folder.string()}), kExitOther);
  EXPECT_FALSE(fs::exists(folder / "program.pb"));
}

TEST_F(CliTest, AFolderThatCannotBeWrittenIsOneLine) {
  EXPECT_EQ(Run({"submit", model_, "--server", "127.0.0.1:1", "--out", model_ + "/out"}),
            kExitOther);
  EXPECT_THAT(err(), HasSubstr("cannot create the folder")) << "before it asks the server";
  EXPECT_EQ(Submit({"--out", model_ + "/out"}, /*live=*/true), kExitOther);
  EXPECT_THAT(err(), HasSubstr("hackc-client: "));
  EXPECT_THAT(err(), HasSubstr("cannot create the folder"));
}

TEST_F(CliTest, HostileNamesStayInTheFolder) {
  for (v1::CompileEvent& event : service_.events) {
    if (!event.has_program()) continue;
    event.mutable_program()->mutable_program()->mutable_kernels(0)->set_name("../../evil");
  }
  EXPECT_EQ(Submit({"--out", (folder_ / "out").string()}), kExitInvalidArgument);
  EXPECT_THAT(err(), HasSubstr("program.kernels[0].name: expected letters"));
}

TEST_F(CliTest, WrongBytesAreRefused) {
  service_.events[2].mutable_kernel()->set_cubin("other code");
  EXPECT_EQ(Submit(), kExitOther);
  EXPECT_THAT(err(),
              HasSubstr("hackc-client: DATA_LOSS: cubin of double: 10 bytes have the digest"));
  service_.events = TinyEvents();
  service_.events[6].mutable_program()->mutable_bytes()->push_back('x');
  EXPECT_EQ(Submit(), kExitOther);
  EXPECT_THAT(err(), HasSubstr("DATA_LOSS: program: "));
}

TEST_F(CliTest, AnAnswerCutShortIsAnError) {
  service_.events.pop_back();
  EXPECT_EQ(Submit(), kExitOther);
  EXPECT_THAT(err(), HasSubstr("INTERNAL: the answer ended without its report"));
  service_.events.pop_back();
  EXPECT_EQ(Submit(), kExitOther);
  EXPECT_THAT(err(), HasSubstr("INTERNAL: the answer ended without its program"));
}

TEST_F(CliTest, ServerErrorsAreOneLine) {
  service_.events.clear();
  service_.status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                 "config.num_key_value_heads: 5 does not\ndivide \x1b[31m 32");
  EXPECT_EQ(Submit(), kExitInvalidArgument);
  EXPECT_EQ(OneErrorLine(),
            "hackc-client: INVALID_ARGUMENT: config.num_key_value_heads: 5 does not | divide "
            " [31m 32\n");
  EXPECT_EQ(out(), "");
  service_.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "queue is full (64 jobs)");
  EXPECT_EQ(Submit(), kExitOther);
  EXPECT_EQ(OneErrorLine(), "hackc-client: RESOURCE_EXHAUSTED: queue is full (64 jobs)\n");
}

TEST_F(CliTest, NoServerIsOneLine) {
  EXPECT_EQ(Run({"submit", model_, "--server", "127.0.0.1:1"}), kExitUnavailable);
  EXPECT_THAT(OneErrorLine(),
              testing::StartsWith("hackc-client: UNAVAILABLE: server at 127.0.0.1:1: "));
  EXPECT_EQ(Run({"status", "--server", "unix:/nonexistent/socket"}), kExitUnavailable);
}

// A socket that listens on a free port of this machine; the kernel completes connections to it.
class Listener {
 public:
  Listener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(socket_, 4), 0);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Listener() { close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::string& address() const { return address_; }
  int Accept() { return accept(socket_, nullptr, nullptr); }  // negative after Stop
  void Stop() { shutdown(socket_, SHUT_RDWR); }

 private:
  int socket_;
  std::string address_;
};

// Nothing ever answers.
TEST_F(CliTest, ASilentServerIsNotWaitedForForEver) {
  const Listener listener;
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Run({"status", "--connect-timeout", "0.2", "--server", listener.address()}),
            kExitUnavailable);
  EXPECT_THAT(OneErrorLine(), HasSubstr("no answer within 200 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(CliTest, AConnectionThatFailsIsTriedOnceMore) {
  Listener listener;
  int connections = 0;
  std::thread server([&] {
    for (int client; (client = listener.Accept()) >= 0; ++connections) close(client);
  });
  EXPECT_EQ(Run({"status", "--server", listener.address()}), kExitUnavailable);
  listener.Stop();
  server.join();
  EXPECT_EQ(connections, 2);
}

TEST_F(CliTest, UsageErrorsAreOneLine) {
  for (std::vector<std::string> arguments : std::vector<std::vector<std::string>>{
           {},
           {"compile"},
           {"submit"},
           {"submit", model_, "--dtype", "int8"},
           {"submit", model_, "--layers", "many"},
           {"submit", model_, "--layers=-2"},
           {"submit", model_, "--layers", "4294967297"},
           {"submit", model_, "--page-size", "99999999999999999999"},
           {"submit", model_, "--page-size=-1"},
           {"submit", model_, "--page-size", "1.5"},
           {"run", "m", "--ids", "1", "--tokens", "0"},
           {"run", "m", "--ids", "1", "--tokens", "99999999999999999999"},
           {"run", "m", "--ids", "1", "--seed", "99999999999999999999"},
           {"run", "m", "--ids", "1", "--device=-1"},
           {"run", "m", "--ids", "1", "--program", "p", "--dtype", "float32"},
           {"run", "m", "--ids", "1", "--program", "p", "--page-size", "16"},
           {"run", "m", "--ids", "1", "--program", "p", "--server", "a:1"},
           {"run", "m", "--ids", "1", "--program", "p", "--local"},
           {"submit", model_, "--server", "a:1", "--local"},
           {"submit", model_, "--cache-dir", "/tmp"},
           {"explain", model_, "--level", "ptx"},
           {"status", "--connect-timeout", "-1"},
           {"fetch"},
       }) {
    EXPECT_EQ(Run(arguments), kExitUsage) << testing::PrintToString(arguments);
    EXPECT_THAT(OneErrorLine(), testing::StartsWith("hackc-client: usage: "));
    EXPECT_EQ(out(), "");
  }
  EXPECT_EQ(Run({"submit", "--help"}), kExitOk);
  EXPECT_THAT(out(), HasSubstr("--seq"));
  EXPECT_EQ(Run({"--version"}), kExitOk);
  EXPECT_THAT(out(), HasSubstr("hackc "));
}

TEST_F(CliTest, BadModelsAndShapesAreInvalidArguments) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"submit", "/nonexistent.json"}, "/nonexistent.json: no such file"},
      {{"submit", "/dev/null"}, "/dev/null: not a regular file"},
      {{"submit", model_, "--seq", "0"}, "seq: expected N or A..B with 1 <= A <= B, got '0'"},
      {{"submit", model_, "--seq", "9..2"}, "seq: expected"},
      {{"submit", model_, "--seq", "1..99999999999999999999"}, "seq: expected"},
      {{"submit", model_, "--seq", "1..2..3"}, "seq: expected"},
      {{"submit", model_, "--batch", "x"}, "batch: expected"},
      {{"submit", model_, "--past=-1..4"}, "past: expected N or A..B with 0 <= A"},
      {{"fetch", "sha256:12"}, "digest: expected sha256: and 64"},
  };
  for (const auto& [arguments, expected] : cases) {
    EXPECT_EQ(Run(arguments), kExitInvalidArgument) << testing::PrintToString(arguments);
    EXPECT_THAT(OneErrorLine(), testing::StartsWith("hackc-client: INVALID_ARGUMENT: " + expected));
  }
}

TEST_F(CliTest, FetchWritesVerifiedBlobs) {
  std::string code =
      "\x7f"
      "ELF code";
  std::string digest = Sha256Digest(code);
  std::string program = Sha256Digest("a program");
  service_.blobs = {{digest, code}, {program, "a program"}};
  std::string folder = (folder_ / "blobs").string();
  ASSERT_EQ(Run({"fetch", program, digest, "--out", folder, "--server", service_.address()}),
            kExitOk)
      << err();
  EXPECT_EQ(*ReadFile(folder + "/sha256-" + digest.substr(7) + ".cubin", 100), code);
  EXPECT_EQ(*ReadFile(folder + "/sha256-" + program.substr(7) + ".pb", 100), "a program");
  EXPECT_THAT(out(), HasSubstr(".cubin  9 bytes\n"));

  service_.blobs[digest] = "tampered";
  EXPECT_EQ(Run({"fetch", digest, "--out", folder, "--server", service_.address()}), kExitOther);
  EXPECT_THAT(OneErrorLine(), HasSubstr("DATA_LOSS: blob: 8 bytes have the digest"));
  EXPECT_EQ(Run({"fetch", Sha256Digest("?"), "--out", folder, "--server", service_.address()}),
            kExitOther);
  EXPECT_THAT(OneErrorLine(), HasSubstr("NOT_FOUND: sha256:"));
}

TEST_F(CliTest, ExplainPrintsTexts) {
  auto* text = service_.explain_response.add_texts();
  text->set_kernel("layer");
  text->set_level("tile");
  text->set_text("tile text");
  ASSERT_EQ(Run({"explain", model_, "--kernel", "layer", "--level", "tile", "--seq", "4",
                 "--server", service_.address()}),
            kExitOk);
  EXPECT_EQ(out(), "tile text\n") << "one text alone must be fit for a pipe";
  EXPECT_EQ(service_.explain_request.kernel(), "layer");
  EXPECT_EQ(service_.explain_request.level(), "tile");
  EXPECT_EQ(service_.explain_request.model().seq().max(), 4);
  auto* model = service_.explain_response.add_texts();
  model->set_level("graph");
  model->set_text("graph text\n");
  ASSERT_EQ(Run({"explain", model_, "--server", service_.address()}), kExitOk);
  EXPECT_EQ(service_.explain_request.level(), "all");
  EXPECT_EQ(out(), "// ---- layer / tile\ntile text\n// ---- model / graph\ngraph text\n");
}

TEST_F(CliTest, ExplainKeyAndStatusPrint) {
  service_.explain_key_response.set_key("sha256:abc");
  service_.explain_key_response.set_fields("arch = sm_90a");
  service_.explain_key_response.set_difference("seq: 1..64 against 1..32");
  ASSERT_EQ(Run({"explain-key", model_, "--server", service_.address()}), kExitOk);
  EXPECT_EQ(out(),
            "key sha256:abc\nnot in the cache\narch = sm_90a\n"
            "against the nearest stored key:\nseq: 1..64 against 1..32\n");
  service_.status_response.set_version("0.1.0");
  service_.status_response.set_cache_bytes(2500000);
  service_.status_response.add_archs("sm_80");
  service_.status_response.add_archs("sm_90a");
  ASSERT_EQ(Run({"status", "--server", service_.address()}), kExitOk);
  EXPECT_THAT(out(), testing::ContainsRegex("archs +sm_80 sm_90a\n"));
  EXPECT_THAT(out(), testing::ContainsRegex("gpu +none\n"));
  EXPECT_THAT(out(), HasSubstr("2.5 MB"));
  ASSERT_EQ(Run({"status", "--json", "--server", service_.address()}), kExitOk);
  EXPECT_EQ(json::parse(out())["version"], "0.1.0");
}

TEST_F(CliTest, TheServerComesFromTheEnvironment) {
  setenv("HACKC_SERVER", service_.address().c_str(), 1);
  EXPECT_EQ(Run({"status"}), kExitOk) << err();
  unsetenv("HACKC_SERVER");
}

// The process itself: exit codes and streams as a shell sees them.
TEST_F(CliTest, TheBinaryAnswers) {
  std::string command = std::string(HACKC_CLIENT_BINARY) + " status --server " +
                        service_.address() + " > " + (folder_ / "stdout").string();
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), kExitOk);
  EXPECT_THAT(*ReadFile(folder_ / "stdout", 1 << 16), HasSubstr("version"));
  command = std::string(HACKC_CLIENT_BINARY) + " status --server 127.0.0.1:1 2> " +
            (folder_ / "stderr").string();
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), kExitUnavailable);
  EXPECT_THAT(*ReadFile(folder_ / "stderr", 1 << 16),
              testing::StartsWith("hackc-client: UNAVAILABLE"));
  command =
      std::string(HACKC_CLIENT_BINARY) + " status --server " + service_.address() + " > /dev/full";
  EXPECT_EQ(WEXITSTATUS(std::system((command + " 2>/dev/null").c_str())), kExitOther);
}

}  // namespace
}  // namespace hackc::client
