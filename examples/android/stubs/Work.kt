// What the example uses of androidx.work, which Maven Central does not have: signatures alone, so that the
// example's sources can be compiled without the Android tools. The app is built with the real thing.
@file:Suppress("unused", "UNUSED_PARAMETER", "ktlint")

package androidx.work

import android.content.Context

class WorkerParameters

abstract class ListenableWorker(context: Context, parameters: WorkerParameters) {
    val applicationContext: Context get() = TODO()
    val inputData: Data get() = TODO()
    val runAttemptCount: Int get() = TODO()

    abstract class Result {
        companion object {
            @JvmStatic fun success(): Result = TODO()

            @JvmStatic fun failure(): Result = TODO()

            @JvmStatic fun retry(): Result = TODO()
        }
    }
}

abstract class CoroutineWorker(context: Context, parameters: WorkerParameters) :
    ListenableWorker(context, parameters) {
    abstract suspend fun doWork(): Result
}

class Data {
    fun getString(key: String): String? = TODO()

    class Builder {
        fun putString(key: String, value: String?): Builder = TODO()

        fun build(): Data = TODO()
    }
}

enum class NetworkType { UNMETERED }

enum class ExistingWorkPolicy { KEEP }

class Constraints {
    class Builder {
        fun setRequiredNetworkType(type: NetworkType): Builder = TODO()

        fun setRequiresBatteryNotLow(required: Boolean): Builder = TODO()

        fun build(): Constraints = TODO()
    }
}

class OneTimeWorkRequest {
    class Builder(worker: Class<out ListenableWorker>) {
        fun setConstraints(constraints: Constraints): Builder = TODO()

        fun setInputData(data: Data): Builder = TODO()

        fun build(): OneTimeWorkRequest = TODO()
    }
}

abstract class WorkManager {
    abstract fun enqueueUniqueWork(name: String, policy: ExistingWorkPolicy, work: OneTimeWorkRequest): Any

    abstract fun cancelUniqueWork(name: String): Any

    companion object {
        @JvmStatic fun getInstance(context: Context): WorkManager = TODO()
    }
}
