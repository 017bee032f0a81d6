"""List words with opposite meanings, English and Chinese, by stem.

Made by hand. The English ones are FROZEN for models with features ``lexical-v2``; ``tests/text/test_opposites.py`` pins
them. The detector ``contradictions`` has most of them, and pairs of its own (its ``tables``).

Only pairs whose exchange turns a statement round in most contexts; words of many senses ("right", "light",
"fine") are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from truthlens.text.words import stem

SHARED_PAIRS = """
increase/decrease increase/reduce increase/fall increase/drop increase/decline rise/fall rise/drop
rise/decline raise/lower raise/reduce grow/shrink gain/lose expand/shrink improve/worsen strengthen/weaken
accelerate/slow higher/lower high/low more/less more/fewer most/least majority/minority maximum/minimum
larger/smaller large/small largest/smallest big/small bigger/smaller longer/shorter long/short
longest/shortest wide/narrow deep/shallow heavy/light thick/thin faster/slower fast/slow early/late
earlier/later first/last begin/end start/end start/stop start/finish begin/finish open/close open/shut
opened/closed inside/outside indoors/outdoors indoor/outdoor above/below top/bottom upper/lower north/south
northern/southern east/west eastern/western internal/external include/exclude include/omit add/remove
legal/illegal lawful/unlawful compulsory/voluntary accept/reject accept/refuse accept/decline approve/reject
approve/deny approve/veto agree/disagree agree/refuse admit/deny confirm/deny support/oppose support/reject
favour/oppose favor/oppose win/lose won/lost succeed/fail success/failure pass/fail buy/sell import/export
lend/borrow send/receive arrive/depart enter/leave enter/exit join/leave hire/fire hire/dismiss
guilty/innocent alive/dead safe/dangerous harmful/harmless healthy/sick positive/negative good/bad
better/worse best/worst true/false correct/wrong correct/incorrect possible/impossible likely/unlikely
easy/difficult easy/hard easier/harder simple/complex cheap/expensive rich/poor strong/weak stronger/weaker
hot/cold hotter/colder wet/dry clean/dirty full/empty new/old newer/older young/old younger/older
oldest/youngest oldest/newest male/female public/private domestic/foreign permanent/temporary active/inactive
present/absent visible/invisible known/unknown complete/incomplete direct/indirect reversible/irreversible
raw/cooked day/night morning/evening summer/winter left/right lock/unlock install/uninstall enable/disable
connect/disconnect attach/detach load/unload tighten/loosen heat/cool profit/loss surplus/deficit
"""
"""Those that the detector ``contradictions`` knows as well."""
_FURTHER_PAIRS = """
gain/loss expand/contract many/few quick/slow before/after over/under front/back front/rear always/never
often/rarely often/seldom frequently/rarely common/rare everyone/nobody everything/nothing all/none
both/neither with/without allow/forbid allow/prohibit allow/ban permit/prohibit permit/forbid
mandatory/optional required/optional necessary/unnecessary victory/defeat bought/sold give/take arrive/leave
push/pull employ/dismiss arrest/release convict/acquit convicted/acquitted guilty/cleared born/died live/die
survive/die safe/unsafe toxic/harmless healthy/unhealthy able/unable warm/cold warm/cool hard/soft man/woman
men/women boy/girl father/mother husband/wife son/daughter brother/sister he/she his/her
national/international appropriate/inappropriate effective/ineffective conscious/unconscious fresh/stale
frozen/thawed daytime/nighttime spring/autumn spring/fall clockwise/counterclockwise cover/uncover
fasten/unfasten freeze/melt fill/empty acid/alkaline acidic/alkaline ascend/descend ancestor/descendant
teacher/student employer/employee landlord/tenant plaintiff/defendant buyer/seller debit/credit
asset/liability revenue/expense supply/demand predator/prey parent/child
"""
_PAIRS_ZH = """
增加/减少 增长/下降 上升/下降 上涨/下跌 提高/降低 提升/降低 扩大/缩小 高于/低于 多于/少于 大于/小于 最高/最低
最大/最小 最多/最少 最早/最晚 早于/晚于 之前/之后 以前/以后 以上/以下 开始/结束 开放/关闭 打开/关闭 允许/禁止
可以/不得 合法/非法 必须/无需 同意/反对 同意/拒绝 接受/拒绝 批准/否决 支持/反对 承认/否认 成功/失败 胜利/失败
盈利/亏损 买入/卖出 进口/出口 收入/支出 安全/危险 有害/无害 有效/无效 阳性/阴性 正确/错误 可能/不可能
国内/国外 公开/保密 永久/临时 全部/部分 总是/从不 经常/很少 男性/女性 父亲/母亲 上午/下午 白天/夜间 左侧/右侧
内部/外部 北部/南部 东部/西部 加入/退出 到达/离开 出生/去世
"""


def _both_ways(pairs: list[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for one, other in pairs:
        if one != other:
            table.setdefault(one, set()).add(other)
            table.setdefault(other, set()).add(one)
    return MappingProxyType({word: frozenset(others) for word, others in table.items()})


def _read(table: str) -> list[tuple[str, str]]:
    return [(one, other) for one, _, other in (pair.partition("/") for pair in table.split())]


OPPOSITES = _both_ways([(stem(one), stem(other)) for one, other in _read(SHARED_PAIRS + _FURTHER_PAIRS)])
"""Stem to the stems of its opposites."""
OPPOSITES_ZH = _both_ways(_read(_PAIRS_ZH))
"""Chinese word to its opposites."""
