// A proxy that makes a local object store as far away as a remote one: it holds every HTTP request
// for a fixed time, forwards it, and logs it. One thread a connection; connections are kept alive
// on both sides, each client connection having its own to the store.
//
//   delay_proxy UPSTREAM_PORT DELAY_US
//
// prints {"port": N} and then answers lines of stdin:
//   take        the requests finished since the last take, and forgets them:
//               [[start_ns, end_ns, "GET", status, body_bytes], ..] (CLOCK_MONOTONIC; start: the
//               request's head has been read; end: the last byte of the answer has been written)
//   delay N     from now on hold requests for N microseconds; answers "ok"
//   slow K N    from now on hold one request in K for N microseconds more (K = 0: none); "ok"
// It ends when stdin does. Only 127.0.0.1 is listened on and forwarded to.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::atomic<int64_t> delay_us{0};
std::atomic<int64_t> slow_every{0}, slow_us{0}, request_count{0};

// One request in slow_every is slow: which ones looks random and is the same in every run.
int64_t HoldNs() {
  const uint64_t number = static_cast<uint64_t>(request_count.fetch_add(1));
  const int64_t every = slow_every;
  const uint64_t mixed = (number * 0x9e3779b97f4a7c15ULL) >> 32;
  const bool slow = every > 0 && mixed % static_cast<uint64_t>(every) == 0;
  return (delay_us + (slow ? slow_us.load() : 0)) * 1000;
}

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void WaitUntilNs(int64_t when_ns) {
  timespec when{when_ns / 1'000'000'000, when_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR) {
  }
}

struct Entry {
  int64_t start_ns = 0, end_ns = 0;
  std::string method;
  int status = 0;
  int64_t body_bytes = 0;
};

class Log {
 public:
  void Add(Entry entry) {
    std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  std::string Take() {
    std::vector<Entry> taken;
    {
      std::lock_guard lock(mutex_);
      taken.swap(entries_);
    }
    std::ostringstream out;
    out << "[";
    for (size_t i = 0; i < taken.size(); ++i) {
      const Entry& e = taken[i];
      out << (i ? "," : "") << "[" << e.start_ns << "," << e.end_ns << ",\"" << e.method << "\","
          << e.status << "," << e.body_bytes << "]";
    }
    out << "]";
    return out.str();
  }

 private:
  std::mutex mutex_;
  std::vector<Entry> entries_;
};
Log log_of_requests;

// A socket with a read buffer. Closes it at the end of its life.
class Stream {
 public:
  explicit Stream(int fd) : fd_(fd) {
    int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Stream() { close(fd_); }
  Stream(const Stream&) = delete;

  bool Write(std::string_view data) {
    while (!data.empty()) {
      ssize_t sent = send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      data.remove_prefix(sent);
    }
    return true;
  }
  // Up to and including `end`; nullopt when the peer closes first or sends more than 1 MiB.
  std::optional<std::string> ReadUntil(std::string_view end) {
    size_t at;
    while ((at = buffer_.find(end)) == std::string::npos) {
      if (buffer_.size() > 1 << 20 || !Fill()) return std::nullopt;
    }
    std::string head = buffer_.substr(0, at + end.size());
    buffer_.erase(0, at + end.size());
    return head;
  }
  // Passes `size` bytes on.
  bool Copy(int64_t size, Stream* to) {
    while (size > 0) {
      if (buffer_.empty() && !Fill()) return false;
      auto part = static_cast<size_t>(std::min<int64_t>(size, buffer_.size()));
      if (!to->Write(std::string_view(buffer_).substr(0, part))) return false;
      buffer_.erase(0, part);
      size -= static_cast<int64_t>(part);
    }
    return true;
  }

 private:
  bool Fill() {
    size_t old = buffer_.size();
    buffer_.resize(old + (256 << 10));
    ssize_t got = recv(fd_, buffer_.data() + old, 256 << 10, 0);
    buffer_.resize(old + std::max<ssize_t>(got, 0));
    return got > 0;
  }

  int fd_;
  std::string buffer_;
};

// The value of a header, or empty. `head` starts with the first line.
std::string Header(std::string_view head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at)) {
    at += 2;
    if (strncasecmp(head.data() + at, name.data(), name.size()) != 0 ||
        head.compare(at + name.size(), 1, ":") != 0) {
      continue;
    }
    size_t begin = head.find_first_not_of(' ', at + name.size() + 1);
    return std::string(head.substr(begin, head.find("\r\n", begin) - begin));
  }
  return "";
}

// Passes a chunked body on as it is; adds the payload's size to *bytes.
bool CopyChunked(Stream* from, Stream* to, int64_t* bytes) {
  while (true) {
    auto line = from->ReadUntil("\r\n");
    if (!line || !to->Write(*line)) return false;
    int64_t size = std::strtoll(line->c_str(), nullptr, 16);
    *bytes += size;
    if (!from->Copy(size + 2, to)) return false;
    if (size == 0) return true;
  }
}

bool CopyBody(std::string_view head, Stream* from, Stream* to, int64_t* bytes) {
  if (Header(head, "Transfer-Encoding").find("chunked") != std::string::npos) {
    return CopyChunked(from, to, bytes);
  }
  std::string length = Header(head, "Content-Length");
  *bytes = length.empty() ? 0 : std::strtoll(length.c_str(), nullptr, 10);
  return from->Copy(*bytes, to);
}

std::unique_ptr<Stream> Connect(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto stream = std::make_unique<Stream>(fd);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return nullptr;
  return stream;
}

// One request and its answer. False: the connection is of no more use.
bool PassOne(Stream* client, Stream* store) {
  auto request = client->ReadUntil("\r\n\r\n");
  if (!request) return false;
  Entry entry;
  entry.start_ns = NowNs();
  entry.method = request->substr(0, request->find(' '));
  WaitUntilNs(entry.start_ns + HoldNs());
  if (!Header(*request, "Expect").empty()) client->Write("HTTP/1.1 100 Continue\r\n\r\n");
  int64_t sent_bytes = 0;
  if (!store->Write(*request) || !CopyBody(*request, client, store, &sent_bytes)) return false;
  std::optional<std::string> answer;
  do {  // a 100 Continue of the store was answered above
    answer = store->ReadUntil("\r\n\r\n");
    if (!answer || answer->size() < 12) return false;
    entry.status = std::atoi(answer->c_str() + 9);
  } while (entry.status == 100);
  if (!client->Write(*answer)) return false;
  bool has_body = entry.method != "HEAD" && entry.status != 204 && entry.status != 304;
  bool done = !has_body || CopyBody(*answer, store, client, &entry.body_bytes);
  entry.end_ns = NowNs();
  log_of_requests.Add(entry);
  return done && strcasecmp(Header(*answer, "Connection").c_str(), "close") != 0;
}

void ServeConnection(int fd, int store_port) {
  prctl(PR_SET_TIMERSLACK, 1000);  // ns; the default of 50 us would add to every delay
  Stream client(fd);
  auto store = Connect(store_port);
  while (store && PassOne(&client, store.get())) {
  }
}

int Listen(int* port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  if (bind(fd, reinterpret_cast<sockaddr*>(&here), size) != 0 || listen(fd, 1024) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0) {
    return -1;
  }
  *port = ntohs(here.sin_port);
  return fd;
}

void AnswerCommands() {
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "take") {
      std::cout << log_of_requests.Take() << std::endl;
    } else if (line.rfind("delay ", 0) == 0) {
      delay_us = std::atoll(line.c_str() + 6);
      std::cout << "\"ok\"" << std::endl;
    } else if (line.rfind("slow ", 0) == 0) {
      int64_t every = 0, us = 0;
      std::istringstream(line.substr(5)) >> every >> us;
      slow_us = us;
      slow_every = every;
      std::cout << "\"ok\"" << std::endl;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: delay_proxy UPSTREAM_PORT DELAY_US\n";
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  int store_port = std::atoi(argv[1]);
  delay_us = std::atoll(argv[2]);
  int port = 0;
  int listener = Listen(&port);
  if (listener < 0) {
    std::cerr << "delay_proxy: cannot listen\n";
    return 1;
  }
  std::cout << "{\"port\": " << port << "}" << std::endl;
  std::thread([listener, store_port] {
    while (true) {
      int fd = accept(listener, nullptr, nullptr);
      if (fd >= 0) std::thread(ServeConnection, fd, store_port).detach();
    }
  }).detach();
  AnswerCommands();
  std::_Exit(0);  // threads that wait on sockets have nothing to put in order
}
